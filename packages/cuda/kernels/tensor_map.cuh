#ifndef ROOFLINE_TENSOR_MAP_CUH
#define ROOFLINE_TENSOR_MAP_CUH

namespace {

/** A CUtensorMap, which cuTensorMapEncodeTiled writes on the host: the shape of a tensor that TMA copies. */
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

}  // namespace

#endif
