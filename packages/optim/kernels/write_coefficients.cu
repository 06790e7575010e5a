// kernel  write_coefficients(coefficients, c0, c1, c2, c3, c4, c5), one thread
// The numbers that several calls of an update read.

extern "C" __global__ void write_coefficients(float* coefficients, float c0, float c1, float c2, float c3, float c4,
                                              float c5) {
  const float values[] = {c0, c1, c2, c3, c4, c5};
  for (int i = 0; i < 6; i++) coefficients[i] = values[i];
}
