// kernel  update_scale(scale, growthTracker, foundInf, growthFactor, backoffFactor, growthInterval), one thread
// The loss scale and the count of good steps after a step.

extern "C" __global__ void update_scale(float* scale, long long* growthTracker, const float* foundInf,
                                        double growthFactor, double backoffFactor, long long growthInterval) {
  if (*foundInf != 0) {
    const float shrunk = (float)(*scale * backoffFactor);
    // Smaller ones are not normal: their inverse, by which gradients are multiplied, would be infinite, and no step ever good.
    if (shrunk >= 1.175494351e-38f) *scale = shrunk;
    *growthTracker = 0;
  } else if (++*growthTracker >= growthInterval) {
    const float grown = (float)(*scale * growthFactor);
    if (grown <= 3.402823466e38f) *scale = grown;
    *growthTracker = 0;
  }
}
