/** Indices and one grid-wide step beyond them must stay below 2³¹. */
const mostNarrow = 2 ** 30;

/** The C++ type in which a kernel counts so many elements: int32, whose division is faster, while it is wide enough. */
export function offsetType(elements: number): 'int32' | 'int64' {
  return elements <= mostNarrow ? 'int32' : 'int64';
}
