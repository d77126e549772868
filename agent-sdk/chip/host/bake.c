/* Bakes the image of a device, on the chip itself: a machine with the built-ins, the modules' code
   with names resolved, and what the preloaded modules create. A device loads it read-only. It holds
   addresses of this program, so it names the program's build. */
#include "xsAll.h"
#include "chip.h"
#include "code.h"

extern void fxRemapIDs(txMachine *the, txByte *code, txSize size, txID *ids);
extern const uint8_t chip_build_id[]; /* an ELF note: 16 bytes of head, then a SHA-1 */
#define ID (chip_build_id + 16)
#define ID_BYTES 20

typedef struct {
  char magic[8];
  uint8_t id[ID_BYTES];
  txMachine *machine;
  chip_module *modules;
  uint32_t count;
} header;

static const char magic[8] = "brchip1";
#define IMAGE ((header *)CHIP_BAKED)
#define MAX_MODULES 16

static void read_all(int file, void *to, uint32_t size) {
  if (chip_file_read(file, to, size) != (int)size) {
    chip_print("chip: the file of modules ends early\n");
    chip_exit(CHIP_USAGE);
  }
}

static void *read_part(int file, uint32_t size) {
  uint8_t *part = c_malloc(size + 1);
  part[size] = 0;
  read_all(file, part, size);
  return part;
}

void chip_resolve(txMachine *the, chip_module *module, const uint8_t *names) {
  const txByte *p = (const txByte *)names;
  txID count;
  mxDecodeID(p, count);
  txID *ids = c_malloc(count * sizeof(txID));
  if (ids == NULL) fxAbort(the, XS_NOT_ENOUGH_MEMORY_EXIT);
  ids[0] = XS_NO_ID;
  for (txID i = 1; i < count; i++) {
    ids[i] = fxNewNameC(the, (txString)p);
    p += strlen((char *)p) + 1;
  }
  fxRemapIDs(the, (txByte *)module->code, (txSize)module->size, ids);
  c_free(ids);
  for (uint8_t *at = module->code; at < module->code + module->size;) {
    const txS1 size = gxCodeSizes[*at];
    if (*at == XS_CODE_CODE_1) *at = XS_CODE_CODE_ARCHIVE_1;
    else if (*at == XS_CODE_CODE_2) *at = XS_CODE_CODE_ARCHIVE_2;
    else if (*at == XS_CODE_CODE_4) *at = XS_CODE_CODE_ARCHIVE_4;
    uint16_t two;
    uint32_t four;
    if (size > 0) at += size;
    else if (size == 0) at += 1 + sizeof(txID);
    else if (size == -1) at += 2 + at[1];
    else if (size == -2) memcpy(&two, at + 1, 2), at += 3 + two;
    else memcpy(&four, at + 1, 4), at += 5 + four;
  }
}

/* What the collector would mark if a slot of the device's own came to hold it. */
static void keep(txSlot *slot) {
  switch (slot->kind) {
    case XS_STRING_KIND: slot->kind = XS_STRING_X_KIND; break;
    case XS_BIGINT_KIND: slot->kind = XS_BIGINT_X_KIND; break;
    case XS_CODE_KIND: slot->kind = XS_CODE_X_KIND; break;
    case XS_KEY_KIND: slot->kind = XS_KEY_X_KIND; break;
    case XS_ARRAY_KIND:
      for (txIndex i = 0; slot->value.array.address && i < fxGetIndexSize(NULL, slot); i++) keep(slot->value.array.address + i);
      break;
    default: break;
  }
}

void chip_bake(const char *from, const char *to) {
  static txCreation creation = {
      .initialChunkSize = 64 * 1024,
      .incrementalChunkSize = 16 * 1024,
      .initialHeapCount = 8192,
      .incrementalHeapCount = 1024,
      .stackCount = 2048,
      .initialKeyCount = 1024,
      .incrementalKeyCount = 256,
      .nameModulo = CHIP_NAME_MODULO,
      .symbolModulo = CHIP_SYMBOL_MODULO,
  };
  memset(CHIP_BAKED, 0, sizeof(header));
  chip_heap(CHIP_BAKED + sizeof(header), CHIP_BAKED_BYTES - sizeof(header), 0);
  txMachine *the = fxCreateMachine(&creation, "bake", C_NULL, XS_NO_ID);
  if (the == NULL) chip_exit(CHIP_USAGE);
  const int file = chip_open(from, 1);
  chip_module *modules = c_malloc(MAX_MODULES * sizeof(chip_module));
  uint32_t count, size, preload[MAX_MODULES];
  read_all(file, &count, 4);
  if (count > MAX_MODULES) chip_exit(CHIP_USAGE);
  chip_add_functions(the);
  fxBeginHost(the);
  for (uint32_t i = 0; i < count; i++) {
    chip_code head;
    read_all(file, &preload[i], 4);
    read_all(file, &size, 4);
    modules[i].name = read_part(file, size);
    read_all(file, &head, sizeof head);
    uint8_t *names = read_part(file, head.names);
    modules[i].code = read_part(file, head.code);
    modules[i].size = head.code;
    chip_resolve(the, &modules[i], names);
    c_free(names);
  }
  fxEndHost(the);
  chip_modules = modules;
  chip_module_count = count;
  for (uint32_t i = 0; i < count; i++)
    if (preload[i]) chip_import(the, modules[i].name);
  fxShareMachine(the);
  for (txSlot *heap = the->firstHeap; heap; heap = heap->next)
    for (txSlot *slot = heap + 1; slot < heap->value.reference; slot++) keep(slot);
  for (txSlot *slot = the->stack; slot < the->stackTop; slot++) keep(slot);
  memcpy(IMAGE->magic, magic, sizeof magic);
  memcpy(IMAGE->id, ID, ID_BYTES);
  IMAGE->machine = the;
  IMAGE->modules = modules;
  IMAGE->count = count;
  const int image = chip_open(to, 5);
  chip_file_write(image, CHIP_BAKED, (size_t)(chip_heap_top() - CHIP_BAKED));
  chip_exit(0);
}

txMachine *chip_baked(void) {
  if (memcmp(IMAGE->magic, magic, sizeof magic) || memcmp(IMAGE->id, ID, ID_BYTES)) {
    chip_print("chip: the image was baked by another build: bake it again\n");
    chip_exit(CHIP_WRONG_IMAGE);
  }
  chip_modules = IMAGE->modules;
  chip_module_count = IMAGE->count;
  return IMAGE->machine;
}
