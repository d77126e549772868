/* A flash of two sectors, as NOR flash is: erased to ones, then written word by word, each once. A
   sector begins with a generation and ends with what was written last; records follow each other:
   a word of sizes, the key, the value, a checksum, each padded to words. What a power cut left
   fails its checksum and counts as never written. A full sector is copied into the other one, whose
   generation is written last. After the sectors come the slots for programs, just bytes: who writes
   them checks them. The medium is a file of the host. */
#include "chip.h"
#include <string.h>

#define SECTOR_WORDS 512
#define ERASED 0xffffffffu
#define MAX_VALUE 255
#define MAX_KEY 31
/* Of the longest record, in words. */
#define MAX_RECORD (1 + (MAX_KEY + 1) / 4 + (MAX_VALUE + 1) / 4 + 1)

#define SLOT_WORDS (CHIP_SLOT_BYTES / 4)

static struct {
  uint32_t sectors[2][SECTOR_WORDS];
  uint32_t slots[2][SLOT_WORDS];
} medium;
#define flash medium.sectors
static int file;
static uint32_t cut_after;
static uint32_t sector, used;

static void program(uint32_t *at, uint32_t word) {
  *at &= word;
  if (++chip_left.written == cut_after) chip_cut();
  chip_file_seek(file, (uint32_t)((uint8_t *)at - (uint8_t *)&medium));
  chip_file_write(file, at, 4);
}

static void erase(uint32_t *at, uint32_t length) {
  /* Word by word, too: a power cut may come within. A sector's generation goes first. */
  for (uint32_t *end = at + length; at < end; at++) {
    if (*at == ERASED) continue;
    *at = ERASED;
    program(at, ERASED);
  }
}

static uint32_t words(uint32_t bytes) { return (bytes + 3) / 4; }

/* Sizes: 0x5a, then of the value, of the key, and their complement. */
static uint32_t head_of(uint32_t key, uint32_t value) { return 0x5a000000 | value << 16 | key << 8 | ((key ^ value) & 0xff); }

static uint32_t size_of(uint32_t head) {
  const uint32_t key = head >> 8 & 0xff, value = head >> 16 & 0xff;
  return head == head_of(key, value) && key <= MAX_KEY ? 2 + words(key) + words(value) : 0;
}

static uint32_t checksum(const uint32_t *from, uint32_t length) {
  uint32_t sum = 0x811c9dc5;
  for (uint32_t i = 0; i < length * 4; i++) sum = (sum ^ ((const uint8_t *)from)[i]) * 0x01000193;
  return sum;
}

/* The whole record at `at`, or 0. */
static uint32_t whole(const uint32_t *words_of, uint32_t at) {
  const uint32_t size = size_of(words_of[at]);
  if (size == 0 || at + size > SECTOR_WORDS) return 0;
  return checksum(words_of + at, size - 1) == words_of[at + size - 1] ? size : 0;
}

static void scan(void) {
  /* After what a power cut left, the rest of the sector is not trusted to be erased. */
  for (used = 1; used < SECTOR_WORDS && flash[sector][used] != ERASED;) {
    const uint32_t size = whole(flash[sector], used);
    if (size == 0) break;
    used += size;
  }
  for (uint32_t at = used; at < SECTOR_WORDS; at++)
    if (flash[sector][at] != ERASED) used = SECTOR_WORDS;
}

void chip_flash_open(const char *path, uint32_t cut) {
  enum { READ_WRITE = 3, CREATE = 7 };
  file = chip_open(path, READ_WRITE);
  memset(&medium, 0xff, sizeof medium);
  if (file >= 0) chip_file_read(file, &medium, sizeof medium);
  else {
    file = chip_open(path, CREATE);
    chip_file_write(file, &medium, sizeof medium);
  }
  cut_after = cut;
  const uint32_t first = flash[0][0], second = flash[1][0];
  /* Generations count down, because bits can only be cleared. The lower one is the later. */
  sector = first <= second ? 0 : 1;
  if (flash[sector][0] == ERASED) {
    erase(flash[0], SECTOR_WORDS);
    sector = 0;
    program(&flash[0][0], ERASED - 1);
  }
  scan();
}

static const uint32_t *find(uint32_t which, uint32_t end, const char *key) {
  const uint32_t length = strlen(key);
  const uint32_t *found = NULL;
  for (uint32_t at = 1; at < end;) {
    const uint32_t size = whole(flash[which], at);
    if (size == 0) break;
    const uint32_t *record = flash[which] + at;
    if ((record[0] >> 8 & 0xff) == length && memcmp(record + 1, key, length) == 0) found = record;
    at += size;
  }
  return found;
}

int chip_flash_get(const char *key, uint8_t *value) {
  const uint32_t *record = find(sector, used, key);
  if (record == NULL) return -1;
  const uint32_t size = record[0] >> 16 & 0xff;
  memcpy(value, record + 1 + words(record[0] >> 8 & 0xff), size);
  return (int)size;
}

static void append(uint32_t which, const uint32_t *record, uint32_t size) {
  for (uint32_t i = 0; i < size; i++) program(&flash[which][used + i], record[i]);
  used += size;
}

/* Copies what is still valid into the other sector. */
static void move(void) {
  const uint32_t old = sector, end = used, generation = flash[old][0];
  const uint32_t other = 1 - old;
  erase(flash[other], SECTOR_WORDS);
  used = 1;
  for (uint32_t at = 1; at < end;) {
    const uint32_t *record = flash[old] + at;
    const uint32_t size = whole(flash[old], at);
    if (size == 0) break;
    char name[MAX_KEY + 1] = "";
    memcpy(name, record + 1, record[0] >> 8 & 0xff);
    if (find(old, end, name) == record) append(other, record, size);
    at += size;
  }
  program(&flash[other][0], generation - 1);
  sector = other;
}

bool chip_flash_put(const char *key, const uint8_t *value, size_t size) {
  const uint32_t length = strlen(key);
  if (length > MAX_KEY || size > MAX_VALUE) return false;
  uint32_t record[MAX_RECORD];
  memset(record, 0xff, sizeof record);
  record[0] = head_of(length, size);
  memcpy(record + 1, key, length);
  memcpy(record + 1 + words(length), value, size);
  const uint32_t whole_size = 2 + words(length) + words(size);
  record[whole_size - 1] = checksum(record, whole_size - 1);
  if (used + whole_size > SECTOR_WORDS) move();
  if (used + whole_size > SECTOR_WORDS) return false;
  append(sector, record, whole_size);
  return true;
}

const uint8_t *chip_slot(uint32_t slot) { return (const uint8_t *)medium.slots[slot & 1]; }

void chip_slot_erase(uint32_t slot) { erase(medium.slots[slot & 1], SLOT_WORDS); }

/* In order, so that no more than the first word and the last are written twice. */
bool chip_slot_write(uint32_t slot, uint32_t at, const uint8_t *bytes, size_t size) {
  if (at > CHIP_SLOT_BYTES || size > CHIP_SLOT_BYTES - at) return false;
  for (size_t done = 0; done < size;) {
    uint32_t word = ERASED;
    uint32_t *to = &medium.slots[slot & 1][(at + done) / 4];
    for (uint32_t i = (at + done) % 4; i < 4 && done < size; i++) ((uint8_t *)&word)[i] = bytes[done++];
    program(to, word);
  }
  return true;
}
