/* The heap of a device, in one piece of memory: first a small one for C, then XS's chunks, which
   grow upwards, and from the other end its slots and its stack, which grow downwards. While the
   machine is baked, all of it comes from the first, so that what is baked has no hole. */
#include "chip.h"
#include "xsAll.h"

typedef struct block {
  size_t size; /* of the content; a free one has the lowest bit set */
} block;

#define FREE 1u
#define ALIGNMENT 8u

static uint8_t *base, *top, *limit;
static uint8_t *chunks, *chunks_top, *slots, *slots_end;

/* `for_xs`: bytes of it that only XS gets. */
void chip_heap(uint8_t *memory, size_t size, size_t for_xs) {
  base = top = memory + sizeof(block); /* so that contents are aligned */
  limit = chunks = chunks_top = memory + size - for_xs;
  slots = slots_end = memory + size;
}

uint8_t *chip_heap_top(void) { return top; }

/* Nothing here is ever given back, so what is taken is the peak. */
size_t chip_heap_taken(void) {
  return (size_t)(top - base) + (size_t)(chunks_top - chunks) + (size_t)(slots_end - slots);
}

size_t chip_heap_taken_by_c(void) { return (size_t)(top - base); }

static block *next(block *each) { return (block *)((uint8_t *)(each + 1) + (each->size & ~FREE)); }

/* Joins what is free after a block to it. */
static size_t join(block *each) {
  for (block *after = next(each); (uint8_t *)after < top && (after->size & FREE); after = next(each))
    each->size += sizeof(block) + (after->size & ~FREE);
  return each->size & ~FREE;
}

/* A block of the heap that has room for `size` becomes one of that size. */
static void *take(block *each, size_t room, size_t size) {
  if (room - size >= sizeof(block) + ALIGNMENT) {
    each->size = size;
    next(each)->size = (room - size - sizeof(block)) | FREE;
  } else each->size = room;
  return each + 1;
}

static size_t rounded(size_t size) { return ((size + sizeof(block) + ALIGNMENT - 1) & ~(ALIGNMENT - 1)) - sizeof(block); }

void *chip_malloc(size_t size) {
  size = rounded(size);
  for (block *each = (block *)base; (uint8_t *)each < top; each = next(each)) {
    if (!(each->size & FREE)) continue;
    const size_t room = join(each);
    if (room >= size) return take(each, room, size);
  }
  if ((size_t)(limit - top) < size + sizeof(block)) return NULL;
  block *fresh = (block *)top;
  fresh->size = size;
  top = (uint8_t *)next(fresh);
  return fresh + 1;
}

void chip_free(void *content) {
  if (content != NULL) ((block *)content - 1)->size |= FREE;
}

void *chip_calloc(size_t count, size_t size) {
  void *content = chip_malloc(count * size);
  if (content != NULL) memset(content, 0, count * size);
  return content;
}

/* In place where it can: XS lets the text of a JSON.stringify grow by 1 KB at a time. */
void *chip_realloc(void *old, size_t size) {
  if (old == NULL) return chip_malloc(size);
  block *each = (block *)old - 1;
  const size_t known = each->size, room = join(each), wanted = rounded(size);
  if (room >= wanted) return take(each, room, wanted);
  if ((uint8_t *)next(each) == top && (size_t)(limit - (uint8_t *)old) >= wanted) {
    each->size = wanted;
    top = (uint8_t *)next(each);
    return old;
  }
  void *content = chip_malloc(size);
  if (content == NULL) return NULL;
  memcpy(content, old, known < size ? known : size);
  chip_free(old);
  return content;
}

void *fxAllocateChunks(txMachine *the, txSize size) {
  if (chunks == slots_end) return chip_malloc((size_t)size);
  if (slots - chunks_top < size) return C_NULL;
  chunks_top += size;
  return chunks_top - size;
}

void fxFreeChunks(txMachine *the, void *bytes) {}

txSlot *fxAllocateSlots(txMachine *the, txSize count) {
  const size_t size = (size_t)count * sizeof(txSlot);
  if (chunks == slots_end) return chip_malloc(size);
  if ((size_t)(slots - chunks_top) < size) return C_NULL;
  slots -= size;
  return (txSlot *)slots;
}

void *chip_heap_keep(size_t size) {
  size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
  if ((size_t)(slots - chunks_top) < size) return NULL;
  return slots -= size;
}

void fxFreeSlots(txMachine *the, void *from) {}

/* The C library's own memory: there is none. */
void *_sbrk(int size) { return (void *)-1; }
