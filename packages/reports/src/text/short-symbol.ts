import { shorten } from './shorten.ts';

/** Characters of a shortened name. */
const LONGEST_SYMBOL = 60;

/** What a C++ symbol says of types that everybody has, and numbers of its template. */
const PLAIN_ARGUMENT =
  /(?<![\w:])(?:const |unsigned |signed )*(?:float|double|int|long|short|char|bool|void|true|false|\d+(?:u?l{0,2}))(?:\s*const)?[\s*&]*(?=[,>])/g;

/**
 * A name short enough for a table: of a C++ symbol what sets it apart, without namespaces, parameters, lambdas
 * and plain template arguments; then the middle of what is still too long left out. Prose stays as it is.
 * `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(int, ...)` is
 * `vectorized_elementwise_kernel<CUDAFunctor_add>`.
 */
export function shortSymbol(name: string): string {
  const isSymbol = /^void \w|\w::\w|^\w+<.*>/.test(name) && !name.includes('\n');
  if (!isSymbol && /\s/.test(name)) return name;
  const short = isSymbol ? withoutPlainArguments(withoutDecoration(name)) : name;
  return shorten(short === '' ? name : short, LONGEST_SYMBOL);
}

function withoutDecoration(name: string): string {
  const bare = name
    .replace(/^void /, '')
    .replaceAll('(anonymous namespace)::', '')
    .replace(/::\{lambda\([^)]*\)#\d+\}/g, '')
    .replaceAll('::operator()() const', '')
    // How an elementwise kernel of PyTorch's finds its operands, not what it does with them.
    .replace(/,?\s*(?:std::array|TrivialOffsetCalculator)<[^<>]*>/g, '');
  return untilStable(bare, (text) => text.replace(/\([^()]*\)(?: const)?/g, '')).replace(
    /\b[A-Za-z_]\w*::/g,
    '',
  );
}

function withoutPlainArguments(name: string): string {
  return untilStable(name, (text) =>
    text
      .replace(PLAIN_ARGUMENT, '')
      .replace(/,\s*(?=[,>])/g, '')
      .replace(/<[\s,]+/g, '<')
      .replace(/\s+>/g, '>')
      .replace(/<>/g, ''),
  ).trim();
}

function untilStable(text: string, change: (text: string) => string): string {
  const changed = change(text);
  return changed === text ? text : untilStable(changed, change);
}
