/* Programs that were pushed: byte code of this build of XS, stored in the slots of the flash as it
   came. The one that runs is copied to RAM, where its names become the machine's. */
#include "xsAll.h"
#include "chip.h"
#include "code.h"
#include "engine.h"

#define NAME "pushed"

static const chip_code ours = {CHIP_CODE_MAGIC, CHIP_ENGINE, 0, 0};
static chip_module running;

/* What the slot holds, if it is whole byte code of this build. */
static const chip_code *code_in(uint32_t slot) {
  const chip_code *head = (const chip_code *)chip_slot(slot);
  const uint32_t most = CHIP_SLOT_BYTES - sizeof *head;
  if (memcmp(head, &ours, offsetof(chip_code, names))) return NULL;
  return head->names <= most && head->code <= most - head->names ? head : NULL;
}

const chip_module *chip_program(const char *name) {
  return running.code != NULL && !strcmp(name, NAME) ? &running : NULL;
}

/* (slot): runs the module in it; what it exports as default. */
static void js_program(txMachine *the) {
  const chip_code *head = code_in((uint32_t)fxToInteger(the, mxArgv(0)));
  if (head == NULL) mxTypeError("it is not byte code of this build");
  running = (chip_module){NAME, chip_heap_keep(head->code), head->code};
  if (running.code == NULL) fxAbort(the, XS_NOT_ENOUGH_MEMORY_EXIT);
  memcpy(running.code, (const uint8_t *)(head + 1) + head->names, head->code);
  chip_resolve(the, &running, (const uint8_t *)(head + 1));
  mxPushStringC(NAME);
  fxAwaitImport(the, XS_IMPORT_DEFAULT);
  mxPullSlot(mxResult);
}

/* The number of this build, in hexadecimal. */
static void js_build(txMachine *the) {
  char text[2 * CHIP_ENGINE_BYTES + 1];
  for (int i = 0; i < CHIP_ENGINE_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", ours.engine[i]);
  fxString(the, mxResult, text);
}

static void js_erase(txMachine *the) { chip_slot_erase((uint32_t)fxToInteger(the, mxArgv(0))); }

/* (slot, at, bytes) */
static void js_store(txMachine *the) {
  const txInteger slot = fxToInteger(the, mxArgv(0)), at = fxToInteger(the, mxArgv(1));
  uint32_t size;
  const uint8_t *bytes = chip_bytes(the, mxArgv(2), &size);
  if (!chip_slot_write((uint32_t)slot, (uint32_t)at, bytes, size)) mxRangeError("the slot ends before it");
}

/* (slot, length): the SHA-256 of its first bytes. */
static void js_digest(txMachine *the) {
  uint8_t digest[CHIP_MAC_BYTES];
  const txInteger slot = fxToInteger(the, mxArgv(0)), length = fxToInteger(the, mxArgv(1));
  if (length < 0 || length > CHIP_SLOT_BYTES) mxRangeError("the slot ends before it");
  chip_sha256(chip_slot((uint32_t)slot), (size_t)length, digest);
  fxArrayBuffer(the, mxResult, digest, sizeof digest, -1);
}

/* Why the start before this one failed, or "". */
static void js_why(txMachine *the) {
  fxString(the, mxResult, chip_left.why);
  chip_left.why[0] = 0;
}

static void js_watch(txMachine *the) { chip_watch((uint32_t)fxToInteger(the, mxArgv(0))); }

static void js_restart(txMachine *the) { chip_restart(); }

void chip_add_program_functions(txMachine *the, txSlot *last) {
  static const struct {
    txString name;
    txCallback call;
  } functions[] = {{"build", js_build}, {"program", js_program}, {"erase", js_erase}, {"store", js_store},
                   {"digest", js_digest}, {"why", js_why}, {"watch", js_watch}, {"restart", js_restart}};
  for (uint32_t i = 0; i < sizeof functions / sizeof *functions; i++)
    last = fxNextHostFunctionProperty(the, last, functions[i].call, 1, fxNewNameC(the, functions[i].name), XS_DONT_ENUM_FLAG);
}
