import { readFileSync } from 'node:fs';

// Parameters by the words of their types in CUDA C++; others are structures.
const types: Record<string, string> = {
  ...{ int: 'int32', int32: 'int32', unsigned: 'uint32', uint32: 'uint32', int64: 'int64' },
  ...{ 'long long': 'int64', float: 'float32', double: 'float64' },
};

/** The parameters of a kernel as its source declares them: names and types, in their order. */
export function declaredParameters(source: URL, kernel: string): Record<string, string> {
  const text = readFileSync(source, 'utf8').replaceAll(/\/\/.*/g, '');
  const declaration = new RegExp(String.raw`__global__[^;{]*?\b${kernel}\(([^{]*)\)\s*\{`).exec(text);
  if (!declaration) throw new Error(`${source.pathname} declares no kernel ${kernel}.`);
  // Commas between the arguments of a template separate no parameters.
  const parameters = declaration[1]!.replaceAll(/<[^<>]*>/g, '').split(',');
  return Object.fromEntries(
    parameters.map((parameter) => {
      const [, type, name] = /^\s*(.*?)\s*(\w+)\s*$/s.exec(parameter)!;
      return [name!, type!.includes('*') ? 'pointer' : (types[type!] ?? 'struct')];
    }),
  );
}
