import { checkObject, wrongArgument } from '../base/check-value.ts';
import { DeviceError } from '../base/errors.ts';

/** The letter in `KernelSpec` of each type of parameter. A `struct` is passed by value, as its bytes. */
const letters = {
  ...{ pointer: 'p', int32: 'i', uint32: 'u', int64: 'l' },
  ...{ float32: 'f', float64: 'd', struct: 'T' },
} as const;

/** What a kernel takes in one place: `pointer` an address, `struct` bytes, the others numbers. */
export type ParameterType = keyof typeof letters;

/** A kernel's parameters by name, in their order: those of its declaration. */
export type KernelParameters = Readonly<Record<string, ParameterType>>;

/** A value for each parameter; addresses of pointers. */
export type KernelArguments<P extends KernelParameters> = {
  readonly [Name in keyof P]: P[Name] extends 'struct' ? Uint8Array : number;
};

/** The letters of `parameters`. Throws a RooflineError (code ARGUMENT), which names `owner`, for another type. */
export function lettersOf(owner: string, parameters: KernelParameters): string {
  checkObject(owner, 'the parameters', parameters);
  return Object.values(parameters)
    .map((type) => {
      if (Object.hasOwn(letters, type)) return letters[type];
      throw wrongArgument(owner, 'each parameter', `one of ${Object.keys(letters).join(', ')}`, type);
    })
    .join('');
}

/** The types of the letters that `lettersOf` gave; null for a letter that has none. */
export function typesOf(parameters: string): (ParameterType | null)[] {
  const types = Object.keys(letters) as ParameterType[];
  return [...parameters].map((letter) => types.find((type) => letters[type] === letter) ?? null);
}

/**
 * Puts arguments by name into a list. They must be given in the parameters' order, which is checked faster than a name is
 * looked up; throws a DeviceError for another order, or other names.
 */
export function listArguments(
  kernel: string,
  names: readonly string[],
  values: Readonly<Record<string, number | Uint8Array>>,
): (number | Uint8Array)[] {
  const list = new Array<number | Uint8Array>(names.length);
  let i = 0;
  for (const name in values) {
    if (name !== names[i]) throw otherNames(kernel, names, values);
    list[i++] = values[name]!;
  }
  if (i !== names.length) throw otherNames(kernel, names, values);
  return list;
}

function otherNames(kernel: string, names: readonly string[], values: object): DeviceError {
  return new DeviceError(
    `Kernel ${kernel} takes ${names.join(', ')}, in this order, not ${Object.keys(values).join(', ')}.`,
  );
}
