/* HMAC-SHA256 (FIPS 180-4, RFC 2104), as a chip's own hash unit would offer it. */
#include "chip.h"
#include <string.h>

typedef struct {
  uint32_t state[8];
  uint8_t block[64];
  uint32_t length; /* bytes so far */
} sha256;

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void compress(sha256 *hash) {
  uint32_t w[16], s[8];
  memcpy(s, hash->state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t *word = &w[i & 15];
    if (i < 16) *word = __builtin_bswap32(((const uint32_t *)hash->block)[i]);
    else {
      const uint32_t a = w[(i + 1) & 15], b = w[(i + 14) & 15];
      *word += w[(i + 9) & 15] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    const uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + (s[6] ^ (s[4] & (s[5] ^ s[6]))) + K[i] + *word;
    const uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + ((s[0] & s[1]) | (s[2] & (s[0] | s[1])));
    for (int j = 7; j > 0; j--) s[j] = s[j - 1];
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; i++) hash->state[i] += s[i];
}

static void begin(sha256 *hash) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, first, sizeof first);
  hash->length = 0;
}

static void add(sha256 *hash, const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    hash->block[hash->length++ & 63] = bytes[i];
    if ((hash->length & 63) == 0) compress(hash);
  }
}

static void end(sha256 *hash, uint8_t *digest) {
  const uint32_t length = hash->length;
  add(hash, (const uint8_t[]){0x80}, 1);
  while ((hash->length & 63) != 56) add(hash, (const uint8_t[]){0}, 1);
  const uint32_t bits[2] = {__builtin_bswap32(length >> 29), __builtin_bswap32(length << 3)};
  add(hash, (const uint8_t *)bits, 8);
  for (int i = 0; i < 8; i++) hash->state[i] = __builtin_bswap32(hash->state[i]);
  memcpy(digest, hash->state, CHIP_MAC_BYTES);
}

void chip_sha256(const uint8_t *data, size_t size, uint8_t *digest) {
  sha256 hash;
  begin(&hash);
  add(&hash, data, size);
  end(&hash, digest);
}

void chip_hmac(const uint8_t *key, size_t key_size, const uint8_t *data, size_t size, uint8_t *mac) {
  sha256 hash;
  uint8_t pad[64] = {0};
  if (key_size > sizeof pad) chip_sha256(key, key_size, pad);
  else memcpy(pad, key, key_size);
  for (int i = 0; i < 64; i++) pad[i] ^= 0x36;
  begin(&hash);
  add(&hash, pad, sizeof pad);
  add(&hash, data, size);
  end(&hash, mac);
  for (int i = 0; i < 64; i++) pad[i] ^= 0x36 ^ 0x5c;
  begin(&hash);
  add(&hash, pad, sizeof pad);
  add(&hash, mac, CHIP_MAC_BYTES);
  end(&hash, mac);
}
