/* A file of byte code, as the compiler writes it: this, then names and code. Little-endian. */
#ifndef CHIP_CODE_H
#define CHIP_CODE_H

#include <stdint.h>

#define CHIP_ENGINE_BYTES 8

typedef struct {
  uint8_t magic[4];
  uint8_t engine[CHIP_ENGINE_BYTES]; /* the build of XS that runs it: engine.h */
  uint32_t names, code;              /* their bytes */
} chip_code;

#define CHIP_CODE_MAGIC {'b', 'r', 'b', 'c'}

#endif
