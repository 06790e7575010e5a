const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The 16 bits of the nearest bfloat16, ties to even. */
export function toBfloat16(value: number): number {
  float[0] = value;
  const x = bits[0]!;
  if (Number.isNaN(value)) return (x >>> 16) | 0x40;
  return (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
}

/** The value of the bits of a bfloat16. */
export function fromBfloat16(bits16: number): number {
  bits[0] = bits16 << 16;
  return float[0]!;
}

/** The 16 bits of the nearest float16, ties to even. */
export function toFloat16(value: number): number {
  float[0] = value;
  const x = bits[0]!;
  const sign = (x >>> 16) & 0x8000;
  const magnitude = Math.abs(float[0]!);
  if (Number.isNaN(value)) return sign | 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude < 2 ** -14) return sign | roundHalfToEven(magnitude * 2 ** 24);
  const exponent = ((x >>> 23) & 0xff) - 127;
  const mantissa = roundHalfToEven((magnitude / 2 ** exponent - 1) * 1024);
  return sign | (((exponent + 15) << 10) + mantissa);
}

/** The value of the bits of a float16. */
export function fromFloat16(bits16: number): number {
  const sign = bits16 & 0x8000 ? -1 : 1;
  const magnitude = bits16 & 0x7fff;
  if (magnitude >= 0x7c00) return magnitude > 0x7c00 ? NaN : sign * Infinity;
  // As a float32, whose exponents lie 112 higher; so do those of its subnormal numbers.
  bits[0] = magnitude << 13;
  return sign * float[0]! * 2 ** 112;
}

function roundHalfToEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
