/* AES-128 of whole blocks (FIPS 197), one table of 256 bytes, which the first use fills. */
#include "chip.h"
#include <string.h>

static uint8_t box[256];

static uint8_t twice(uint8_t x) { return (uint8_t)(x << 1 ^ (x & 0x80 ? 0x1b : 0)); }

static void fill(void) {
  /* `p` runs through the field by multiplying with 3, `q` by dividing: they are inverse. */
  uint8_t p = 1, q = 1;
  do {
    p = (uint8_t)(p ^ twice(p));
    q ^= (uint8_t)(q << 1);
    q ^= (uint8_t)(q << 2);
    q ^= (uint8_t)(q << 4);
    if (q & 0x80) q ^= 0x09;
    uint8_t mixed = 0x63;
    for (int i = 0; i < 5; i++) mixed ^= (uint8_t)(q << i | q >> (8 - i));
    box[p] = mixed;
  } while (p != 1);
  box[0] = 0x63;
}

static void add_key(uint8_t *block, const uint8_t *key) {
  for (int i = 0; i < 16; i++) block[i] ^= key[i];
}

void chip_aes(const uint8_t *key, uint8_t *block) {
  uint8_t round_key[16], round = 1;
  if (box[0] == 0) fill();
  memcpy(round_key, key, 16);
  add_key(block, round_key);
  for (int n = 1; n <= 10; n++) {
    uint8_t shifted[16];
    for (int i = 0; i < 16; i++) shifted[i] = box[block[(i * 5) & 15]];
    for (int column = 0; column < 16; column += 4) {
      const uint8_t *in = shifted + column;
      const uint8_t all = in[0] ^ in[1] ^ in[2] ^ in[3];
      for (int i = 0; i < 4; i++) block[column + i] = n == 10 ? in[i] : in[i] ^ all ^ twice(in[i] ^ in[(i + 1) & 3]);
    }
    for (int i = 0; i < 16; i++) {
      if (i < 4) round_key[i] ^= (uint8_t)(box[round_key[12 + ((i + 1) & 3)]] ^ (i == 0 ? round : 0));
      else round_key[i] ^= round_key[i - 4];
    }
    round = twice(round);
    add_key(block, round_key);
  }
}
