/* What XS asks of a platform: the chip's. Names that begin with mx, tx and fx are XS's own. */
#ifndef CHIP_PLATFORM_H
#define CHIP_PLATFORM_H

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define mxExport extern
#define mxImport extern
#define XS_FUNCTION_NORETURN __attribute__((noreturn))

#define mxMachinePlatform int promiseJobs;

#define mxUseDefaultMachinePlatform 1
#define mxUseDefaultBuildKeys 1
#define mxUseDefaultSharedChunks 1
/* The default has no answer here, and then nothing ends a recursion. */
#define mxUseDefaultCStackLimit 0

/* Its heap is the chip's own: host/memory.c. */
#define c_malloc chip_malloc
#define c_calloc(COUNT, SIZE) chip_calloc((COUNT), (SIZE))
#define c_realloc chip_realloc
#define c_free chip_free
#define c_malloc_uint32 chip_malloc
#define c_free_uint32 chip_free
void *chip_malloc(size_t size);
void *chip_calloc(size_t count, size_t size);
void *chip_realloc(void *old, size_t size);
void chip_free(void *block);

#endif
