// Writes slices to positions along one dimension that an index tensor gives.
//
// kernel   index_copy(target, otherTarget, index, source, otherSource, places, owners, chosen, length)
//            target[..., index[j], ...] = source[..., j, ...]; of equal indices the last j, and none for an index outside
//          target: WORD, of length places along the dimension; source: WORD, of chosen; index: INDEX [chosen]
//          places: how `owners`, all combinations of the other dimensions, lie in both, and their steps along the dimension
//          otherTarget, otherSource: a second pair with the layout of the first
//            grid (ceil(owners / 256), pairs), block 256
//   macros WORD: unsigned integers as wide as the elements; INDEX; RANK: the other dimensions
// Bound by memory: the source is read once and as much of the target written. A thread owns one combination and walks over j.
#include "prelude.cuh"

struct Places {
  int64 lengths[RANK];
  int64 targetStrides[RANK];
  int64 sourceStrides[RANK];
  int64 targetStep;
  int64 sourceStep;
  int64 indexStep;
};

extern "C" __global__ void __launch_bounds__(256)
    index_copy(WORD* target, WORD* otherTarget, const INDEX* index, const WORD* source, const WORD* otherSource,
               Places places, int64 owners, int64 chosen, int64 length) {
  if (blockIdx.y == 1) {
    target = otherTarget;
    source = otherSource;
  }
  int64 owner = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (owner >= owners) return;
#pragma unroll
  for (int d = RANK - 1; d >= 0; d--) {
    const int64 i = owner % places.lengths[d];
    owner /= places.lengths[d];
    target += i * places.targetStrides[d];
    source += i * places.sourceStrides[d];
  }
  for (int64 j = 0; j < chosen; j++) {
    const int64 at = index[j * places.indexStep];
    if (at >= 0 && at < length) target[at * places.targetStep] = source[j * places.sourceStep];
  }
}
