/* What XS asks of a host, and the global `chip` with which JavaScript asks for the rest. */
#include "xsAll.h"
#include "chip.h"

const chip_module *chip_modules;
uint32_t chip_module_count;
static uint32_t random_state;
static uint64_t alarm_at;
#define NEVER UINT64_MAX
#define TICKS_PER_MS 25000
#define UNUSED_SLOT 0xa5a5a5a5

char *fxCStackLimit() { return chip_stack_limit(); }

/* Names of the functions that run, the innermost first. */
static void print_calls(txMachine *the) {
  for (txSlot *frame = the->frame; frame != NULL; frame = frame->next) {
    const txSlot *function = frame + 3;
    if (function->kind != XS_REFERENCE_KIND) continue;
    const txString name = fxGetKeyName(the, mxFunctionInstanceCode(function->value.reference)->ID);
    chip_print(" < ");
    chip_print(name == NULL ? "?" : name);
  }
}

void fxAbort(txMachine *the, int status) {
  static const char *const why[] = {"debugger", "memory is full",     "stack overflow", "fatal check",      "dead strip",
                                    "an exception", "no keys are left", "too long",       "an unhandled rejection"};
  chip_print("chip: ");
  if (status == XS_STACK_OVERFLOW_EXIT) {
    char here;
    chip_print(&here <= chip_stack_limit() ? "C " : "JavaScript ");
  }
  chip_print(status <= 8 ? why[status] : "aborted");
  if (status == XS_NOT_ENOUGH_MEMORY_EXIT) {
    char text[128];
    snprintf(text, sizeof text, ": C %u, all %u; chunks %u of %u, slots %u of %u, keys %d", (unsigned)chip_heap_taken_by_c(),
             (unsigned)chip_heap_taken(), (unsigned)the->currentChunksSize, (unsigned)the->maximumChunksSize,
             (unsigned)the->currentHeapCount, (unsigned)the->maximumHeapCount, the->keyIndex);
    chip_print(text);
  }
  const char *reason = status <= 8 ? why[status] : "aborted";
  if (status == XS_UNHANDLED_EXCEPTION_EXIT || status == XS_UNHANDLED_REJECTION_EXIT) {
    reason = fxToString(the, &mxException);
    chip_print(": ");
    chip_print(reason);
  } else print_calls(the);
  chip_print("\n");
  chip_fail(CHIP_ABORTED + status, reason);
}

void fxQueuePromiseJobs(txMachine *the) { the->promiseJobs = 1; }

txScript *fxParseScript(txMachine *the, void *stream, txGetter getter, txUnsigned flags) {
  mxSyntaxError("there is no parser on this device");
  return C_NULL;
}

static const chip_module *module_of(const char *name) {
  for (uint32_t i = 0; i < chip_module_count; i++)
    if (!strcmp(chip_modules[i].name, name)) return &chip_modules[i];
  return chip_program(name);
}

txID fxFindModule(txMachine *the, txSlot *realm, txID base, txSlot *slot) {
  const txString name = fxToString(the, slot);
  return module_of(name) == NULL ? XS_NO_ID : fxNewNameC(the, name);
}

void fxLoadModule(txMachine *the, txSlot *module, txID id) {
  const chip_module *found = module_of(fxGetKeyName(the, id));
  if (found == NULL) return;
  /* Its names are this machine's already. */
  txScript script = {.codeBuffer = (txByte *)found->code, .codeSize = (txSize)found->size, .path = (txString)found->name};
  fxResolveModule(the, module, id, &script, C_NULL, C_NULL);
}

/* The global `chip` */

uint8_t *chip_bytes(txMachine *the, txSlot *slot, uint32_t *size) {
  txSlot *first = slot->kind == XS_REFERENCE_KIND ? slot->value.reference->next : C_NULL;
  if (first && first->kind == XS_TYPED_ARRAY_KIND) {
    const txSlot *view = first->next;
    *size = (uint32_t)view->value.dataView.size;
    return (uint8_t *)view->next->value.reference->next->value.arrayBuffer.address + view->value.dataView.offset;
  }
  if (!first || first->kind != XS_ARRAY_BUFFER_KIND) mxTypeError("bytes are an ArrayBuffer or a Uint8Array");
  *size = (uint32_t)first->next->value.bufferInfo.length;
  return (uint8_t *)first->value.arrayBuffer.address;
}

static void result_integer(txMachine *the, txInteger value) {
  mxResult->kind = XS_INTEGER_KIND;
  mxResult->value.integer = value;
}

static void js_now(txMachine *the) { result_integer(the, (txInteger)(chip_ticks() / TICKS_PER_MS)); }

/* (ms): the global `onAlarm` follows once; a new one replaces it; below 0 there is none. */
static void js_alarm(txMachine *the) {
  const txInteger ms = fxToInteger(the, mxArgv(0));
  alarm_at = ms < 0 ? NEVER : chip_ticks() + (uint64_t)ms * TICKS_PER_MS;
}

static void js_write(txMachine *the) {
  uint32_t size;
  const uint8_t *bytes = chip_bytes(the, mxArgv(0), &size);
  chip_line_write(bytes, size);
}

static void js_print(txMachine *the) {
  chip_print(fxToString(the, mxArgv(0)));
  chip_print("\n");
}

static void js_get(txMachine *the) {
  uint8_t value[255];
  const int size = chip_flash_get(fxToString(the, mxArgv(0)), value);
  if (size >= 0) fxArrayBuffer(the, mxResult, value, size, -1);
}

static void js_put(txMachine *the) {
  uint32_t size;
  const uint8_t *value = chip_bytes(the, mxArgv(1), &size);
  if (!chip_flash_put(fxToString(the, mxArgv(0)), value, size)) mxUnknownError("the flash cannot hold this value");
}

static void js_hmac(txMachine *the) {
  uint8_t mac[CHIP_MAC_BYTES];
  uint32_t key_size, size;
  const uint8_t *key = chip_bytes(the, mxArgv(0), &key_size);
  const uint8_t *data = chip_bytes(the, mxArgv(1), &size);
  chip_hmac(key, key_size, data, size, mac);
  fxArrayBuffer(the, mxResult, mac, sizeof mac, -1);
}

/* (key, blocks): AES-128, ECB. */
static void js_aes(txMachine *the) {
  uint32_t key_size, size;
  chip_bytes(the, mxArgv(1), &size);
  uint8_t *out = fxArrayBuffer(the, mxResult, C_NULL, (txInteger)size, -1);
  memcpy(out, chip_bytes(the, mxArgv(1), &size), size);
  const uint8_t *key = chip_bytes(the, mxArgv(0), &key_size);
  for (uint32_t at = 0; at + CHIP_AES_BYTES <= size; at += CHIP_AES_BYTES) chip_aes(key, out + at);
}

/* (length): bytes that a seed determines, so that two runs are equal (xorshift). */
static void js_random(txMachine *the) {
  const txInteger length = fxToInteger(the, mxArgv(0));
  uint8_t *bytes = fxArrayBuffer(the, mxResult, C_NULL, length, -1);
  for (txInteger i = 0; i < length; i++) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    bytes[i] = (uint8_t)random_state;
  }
}

static void js_exit(txMachine *the) { chip_exit(fxToInteger(the, mxArgv(0))); }

/* Slots of the JavaScript stack that were ever used. XS also takes its far end for scratch: the
   stack ends before the first gap that is longer than a frame leaves. */
static txInteger stack_peak(txMachine *the) {
  enum { GAP = 16 };
  txInteger peak = 0;
  for (txInteger at = 1; at < the->stackTop - the->stackBottom && at < peak + GAP; at++)
    if (*(const uint32_t *)(the->stackTop - at) != UNUSED_SLOT) peak = at;
  return peak;
}

/* (n): what the run has cost so far; js/chip.d.ts says what n is. */
static void js_figure(txMachine *the) {
  txNumber value = 0;
  switch (fxToInteger(the, mxArgv(0))) {
    case 0: value = (txNumber)chip_busy_ticks() * 40; break;
    case 1: value = (txNumber)chip_heap_taken(); break;
    case 2:
      fxCollectGarbage(the);
      value = (txNumber)the->currentChunksSize + (txNumber)the->currentHeapCount * sizeof(txSlot);
      break;
    case 3: value = (txNumber)chip_stack_peak(); break;
    case 4: value = (txNumber)stack_peak(the) * sizeof(txSlot); break;
    case 5:
      for (txID i = 0; i < the->aliasCount; i++)
        if (the->aliasArray[i]) value++;
      break;
  }
  mxResult->kind = XS_NUMBER_KIND;
  mxResult->value.number = value;
}

static void js_argument(txMachine *the) { fxString(the, mxResult, (txString)the->context); }

typedef struct {
  txString name;
  txCallback call;
} host_function;

static const host_function functions[] = {
    {"now", js_now},   {"alarm", js_alarm}, {"write", js_write},   {"print", js_print}, {"get", js_get}, {"argument", js_argument},
    {"put", js_put},   {"hmac", js_hmac},   {"random", js_random}, {"aes", js_aes},       {"exit", js_exit},   {"figure", js_figure},
};

void chip_add_functions(txMachine *the) {
  fxBeginHost(the);
  mxPush(mxObjectPrototype);
  txSlot *last = fxLastProperty(the, fxNewObjectInstance(the));
  for (uint32_t i = 0; i < sizeof functions / sizeof *functions; i++)
    last = fxNextHostFunctionProperty(the, last, functions[i].call, 1, fxNewNameC(the, functions[i].name), XS_DONT_ENUM_FLAG);
  chip_add_program_functions(the, last);
  fxNextSlotProperty(the, fxLastProperty(the, mxGlobal.value.reference), the->stack, fxNewNameC(the, "chip"), XS_DONT_ENUM_FLAG);
  fxEndHost(the);
}

/* Running */

static void settle(txMachine *the) {
  while (the->promiseJobs) {
    the->promiseJobs = 0;
    fxRunPromiseJobs(the);
  }
  fxEndJob(the);
}

void chip_import(txMachine *the, const char *name) {
  fxBeginHost(the);
  mxTry(the) {
    mxPushStringC((txString)name);
    fxAwaitImport(the, 0);
    mxPop();
  }
  mxCatch(the) { fxAbort(the, XS_UNHANDLED_EXCEPTION_EXIT); }
  fxEndHost(the);
  settle(the);
}

/* Calls a global function with these bytes. */
static void event(txMachine *the, const char *name, const uint8_t *bytes, size_t size) {
  fxBeginHost(the);
  mxTry(the) {
    mxPush(mxGlobal);
    mxDub();
    mxGetID(fxNewNameC(the, (txString)name));
    mxCall();
    mxPushUndefined();
    fxArrayBuffer(the, the->stack, (void *)bytes, (txInteger)size, -1);
    mxRunCount(1);
    mxPop();
  }
  mxCatch(the) { fxAbort(the, XS_UNHANDLED_EXCEPTION_EXIT); }
  fxEndHost(the);
  settle(the);
}

/* A text ends with a zero byte: so a frame of the serial line comes in one piece if it fits. */
#define LINE_BYTES 512

static _Noreturn void serve(txMachine *the) {
  uint8_t line[LINE_BYTES];
  size_t length = 0;
  for (;;) {
    chip_feed();
    bool quiet = true;
    while (length < LINE_BYTES && chip_line_read(line + length, 1) == 1) {
      quiet = false;
      if (line[length++] == 0) break;
    }
    if (length == LINE_BYTES || (length > 0 && line[length - 1] == 0)) {
      const size_t size = length;
      length = 0;
      event(the, "onData", line, size);
    }
    if (chip_ticks() >= alarm_at) {
      quiet = false;
      alarm_at = NEVER;
      event(the, "onAlarm", line, 0);
    }
    if (!quiet) continue;
    const uint64_t now = chip_ticks();
    const uint32_t ms = alarm_at == NEVER ? UINT32_MAX : alarm_at <= now ? 0 : (uint32_t)((alarm_at - now) / TICKS_PER_MS) + 1;
    const uint32_t half = chip_watched() / 2;
    chip_sleep(half > 0 && half < ms ? half : ms);
  }
}

/* In small steps less is left unused, and garbage is collected more often. */
static txCreation creation = {
    .initialChunkSize = 16 * 1024,
    .incrementalChunkSize = 4096,
    .initialHeapCount = 1536,
    .incrementalHeapCount = 256,
    .stackCount = 640, /* as in moddable/manifest.json */
    .initialKeyCount = 64,
    .incrementalKeyCount = 64,
    .nameModulo = CHIP_NAME_MODULO,
    .symbolModulo = CHIP_SYMBOL_MODULO,
};

void chip_run(const char *module, const char *argument) {
  txMachine *the = fxCloneMachine(&creation, chip_baked(), "chip", (void *)argument);
  if (the == NULL) chip_exit(CHIP_USAGE);
  for (txSlot *at = the->stackBottom; at < the->stack - 4; at++) *(uint32_t *)at = UNUSED_SLOT;
  random_state = 0x6b8b4567;
  alarm_at = NEVER;
  chip_import(the, module);
  serve(the);
}
