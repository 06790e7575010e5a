import { DeviceError } from '../base/errors.ts';
import type { KernelSpec } from '../kernel.ts';
import { type ParameterType, typesOf } from './kernel-parameters.ts';

/** One parameter of a kernel as its source declares it. */
export interface DeclaredParameter {
  readonly name: string;
  /** `const float* x`. */
  readonly text: string;
  /** Null for the name of another type: a structure's, a macro's or an alias. */
  readonly type: ParameterType | null;
}

// Parameters by the words of their types in CUDA C++.
const types: Readonly<Record<string, ParameterType>> = {
  ...{ int: 'int32', int32: 'int32', int32_t: 'int32' },
  ...{ unsigned: 'uint32', 'unsigned int': 'uint32', uint32: 'uint32', uint32_t: 'uint32' },
  ...{ int64: 'int64', int64_t: 'int64', 'long long': 'int64', float: 'float32', double: 'float64' },
};
const qualifiers = /\b(const|volatile|__restrict__|__grid_constant__)\b/g;

/** The parameters that `source` declares a kernel with, in their order; null where it declares none of that name. */
export function declaredParameters(
  source: string,
  kernel: string,
  defines: KernelSpec['defines'] = {},
): DeclaredParameter[] | null {
  const text = source.replaceAll(/\/\/.*|\/\*[^]*?\*\//g, '');
  const [, list] = new RegExp(String.raw`__global__[^;{]*?\b${kernel}\(([^{]*?)\)\s*\{`).exec(text) ?? [];
  // What is declared in several ways is left to the compiler.
  if (list === undefined || list.includes('#')) return null;
  if (list.trim() === '') return [];
  // Commas between the arguments of a template separate no parameters.
  return list
    .replaceAll(/<[^<>]*>/g, '')
    .split(',')
    .map((parameter) => parameterOf(parameter, defines));
}

function parameterOf(declared: string, defines: NonNullable<KernelSpec['defines']>): DeclaredParameter {
  const text = declared.replaceAll(/\s+/g, ' ').trim();
  const [, words = '', name = ''] = /^(.*?)(\w+)$/.exec(text) ?? [];
  const word = words.replaceAll(qualifiers, ' ').replaceAll(/\s+/g, ' ').trim();
  const type = Object.hasOwn(defines, word) ? String(defines[word]) : word;
  return { name, text, type: type.includes('*') ? 'pointer' : (types[type] ?? null) };
}

/** Throws a DeviceError for a kernel that its source declares with other parameters than the spec has. */
export function checkDeclared(spec: KernelSpec, source: string): void {
  const declared = declaredParameters(source, spec.name, spec.defines);
  if (declared === null) return;
  const given = typesOf(spec.parameters);
  // A letter without meaning is refused where the kernel is loaded.
  if (given.includes(null)) return;
  const place = declared.findIndex(
    ({ type }, i) => given[i] === undefined || (type !== null && type !== given[i]),
  );
  if (place < 0 && declared.length === given.length) return;
  const file = spec.source.pathname.slice(spec.source.pathname.lastIndexOf('/') + 1);
  const wrong = declared[place];
  const what =
    declared.length === given.length
      ? `parameter ${place + 1}, \`${wrong!.text}\`, is ${wrong!.type} there and ${given[place]} in the launch`
      : `${declared.length} parameters there, ${given.length} in the launch`;
  throw new DeviceError(
    `Kernel ${spec.name}: ${file} declares it with (${declared.map(({ text }) => text).join(', ')}), but it is to be launched ` +
      `with (${given.join(', ')}): ${what}. Give kernelVariants the parameters of the declaration.`,
  );
}
