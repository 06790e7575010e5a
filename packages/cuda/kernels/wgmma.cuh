// The asynchronous products of a warpgroup (wgmma): sum[64][N] += A[64][16] · B[16][N], of ELEMENT with float32 sums,
// for the N that kernels here take. PTX names every register, hence the lists.
//
// Each thread holds N / 2 of the sums: those of row r = 16 · warp + lane / 4 and of row r + 8, at the columns
// 8i + 2 · (lane % 4) + {0, 1}, in the order row r, row r, row r + 8, row r + 8 for each i.
#ifndef ROOFLINE_WGMMA_CUH
#define ROOFLINE_WGMMA_CUH

#include "prelude.cuh"

#define PTX_NAME_bfloat16 "bf16"
#define PTX_NAME_float16 "f16"
#define PTX_NAME_OF(element) PTX_NAME_##element
#define PTX_NAME(element) PTX_NAME_OF(element)

#define REGISTERS_8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define REGISTERS_16 REGISTERS_8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define REGISTERS_24 REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define REGISTERS_32 REGISTERS_24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define REGISTERS_40 REGISTERS_32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define REGISTERS_48 REGISTERS_40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define REGISTERS_64 \
  REGISTERS_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define REGISTERS_96 \
  REGISTERS_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79" \
               ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define REGISTERS_128 \
  REGISTERS_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
               ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define OPERANDS_8_FROM(x, i) \
  "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])
#define OPERANDS_16_FROM(x, i) OPERANDS_8_FROM(x, i), OPERANDS_8_FROM(x, i + 8)
#define OPERANDS_8(x) OPERANDS_8_FROM(x, 0)
#define OPERANDS_16(x) OPERANDS_16_FROM(x, 0)
#define OPERANDS_24(x) OPERANDS_16_FROM(x, 0), OPERANDS_8_FROM(x, 16)
#define OPERANDS_32(x) OPERANDS_24(x), OPERANDS_8_FROM(x, 24)
#define OPERANDS_40(x) OPERANDS_32(x), OPERANDS_8_FROM(x, 32)
#define OPERANDS_48(x) OPERANDS_40(x), OPERANDS_8_FROM(x, 40)
#define OPERANDS_64(x) OPERANDS_48(x), OPERANDS_16_FROM(x, 48)
#define OPERANDS_96(x) OPERANDS_64(x), OPERANDS_16_FROM(x, 64), OPERANDS_16_FROM(x, 80)
#define OPERANDS_128(x) OPERANDS_96(x), OPERANDS_16_FROM(x, 96), OPERANDS_16_FROM(x, 112)

namespace {

/** A and B are operands in shared memory by their descriptors, or A lies in registers, as mma.sync has it. */
template <int columns>
struct Product;

// i0 to i6: the numbers that PTX gives to the operands after the registers of the sums.
#define DEFINE_PRODUCT(columns, registers, operands, i0, i1, i2, i3, i4, i5, i6)                                     \
  template <>                                                                                                        \
  struct Product<columns> {                                                                                          \
    /** kTransposeA, kTransposeB: rows of the operand in shared memory run along M or N, not along K. */             \
    template <int kTransposeA, int kTransposeB>                                                                      \
    static __device__ __forceinline__ void of_shared(float (&sum)[columns / 2], uint64 a, uint64 b, int accumulate) {  \
      asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #i2 ", 0;\n"                                              \
                   " wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." PTX_NAME(ELEMENT) "." PTX_NAME(ELEMENT)  \
                   " {" registers "}, %" #i0 ", %" #i1 ", p, 1, 1, %" #i3 ", %" #i4 ";\n}"                           \
                   : operands(sum)                                                                                   \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposeA), "n"(kTransposeB));                           \
    }                                                                                                                \
    template <int kTransposeB>                                                                                       \
    static __device__ __forceinline__ void of_registers(float (&sum)[columns / 2], const uint32* a, uint64 b,        \
                                                        int accumulate) {                                            \
      asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #i5 ", 0;\n"                                              \
                   " wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." PTX_NAME(ELEMENT) "." PTX_NAME(ELEMENT)  \
                   " {" registers "}, {%" #i0 ",%" #i1 ",%" #i2 ",%" #i3 "}, %" #i4 ", p, 1, 1, %" #i6 ";\n}"        \
                   : operands(sum)                                                                                   \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(kTransposeB));         \
    }                                                                                                                \
  };

DEFINE_PRODUCT(16, REGISTERS_8, OPERANDS_8, 8, 9, 10, 11, 12, 13, 14)
DEFINE_PRODUCT(32, REGISTERS_16, OPERANDS_16, 16, 17, 18, 19, 20, 21, 22)
DEFINE_PRODUCT(48, REGISTERS_24, OPERANDS_24, 24, 25, 26, 27, 28, 29, 30)
DEFINE_PRODUCT(64, REGISTERS_32, OPERANDS_32, 32, 33, 34, 35, 36, 37, 38)
DEFINE_PRODUCT(80, REGISTERS_40, OPERANDS_40, 40, 41, 42, 43, 44, 45, 46)
DEFINE_PRODUCT(96, REGISTERS_48, OPERANDS_48, 48, 49, 50, 51, 52, 53, 54)
DEFINE_PRODUCT(128, REGISTERS_64, OPERANDS_64, 64, 65, 66, 67, 68, 69, 70)
DEFINE_PRODUCT(192, REGISTERS_96, OPERANDS_96, 96, 97, 98, 99, 100, 101, 102)
DEFINE_PRODUCT(256, REGISTERS_128, OPERANDS_128, 128, 129, 130, 131, 132, 133, 134)

}  // namespace

#endif
