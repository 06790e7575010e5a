// kernel  update_scale(scale, growthTracker, foundInf, growthFactor, backoffFactor, growthInterval), one thread
// The loss scale and the count of good steps after a step.

extern "C" __global__ void update_scale(float* scale, long long* growthTracker, const float* foundInf,
                                        double growthFactor, double backoffFactor, long long growthInterval) {
  if (*foundInf != 0) {
    *scale = (float)(*scale * backoffFactor);
    *growthTracker = 0;
  } else if (++*growthTracker == growthInterval) {
    const float grown = (float)(*scale * growthFactor);
    if (grown <= 3.402823466e38f) *scale = grown;
    *growthTracker = 0;
  }
}
