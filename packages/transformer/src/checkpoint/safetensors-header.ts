import { type DType, RooflineError, type Shape, byteSize, formatShape, sizeOf } from '@roofline/tensor-core';

/** A file that is not safetensors, is damaged, or holds what Roofline has no dtype for. */
export class SafetensorsError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('SAFETENSORS', message, options);
  }
}

/** Where a tensor lies in a file; bytes count from the start of the file. */
export interface SafetensorsEntry {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** What the header of a file says. */
export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, SafetensorsEntry>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Throws a SafetensorsError, which names `owner`, unless `metadata` is text by names. */
export function checkMetadata(owner: string, metadata: Readonly<Record<string, string>>): void {
  if (isRecord(metadata) && Object.values(metadata).every((value) => typeof value === 'string')) return;
  throw new SafetensorsError(`${owner}: the metadata must be text by names, such as { format: 'pt' }.`);
}

/** The header's own length precedes it, in this many bytes. */
export const lengthBytes = 8;
/** Longer headers are refused, as the format's own library does. */
const maxHeaderBytes = 100_000_000;
const alignment = 8;
const metadataKey = '__metadata__';

const fileNames: Readonly<Record<DType, string>> = {
  float32: 'F32',
  float16: 'F16',
  bfloat16: 'BF16',
  float64: 'F64',
  int32: 'I32',
  int64: 'I64',
  bool: 'BOOL',
};
const dtypesByFileName = new Map(Object.entries(fileNames).map(([dtype, name]) => [name, dtype as DType]));

/** Dtype and shape of a tensor to write. */
export interface TensorSpecification {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
}

/**
 * Tensors as their data follow one another: the largest elements first, so that each begins at a multiple of its element
 * size. PyTorch cannot see a tensor anywhere else in the bytes of a file.
 */
export function inOrderOfData<T extends TensorSpecification>(tensors: readonly T[]): readonly T[] {
  return tensors.toSorted((a, b) => byteSize(b.dtype) - byteSize(a.dtype));
}

/** The first bytes of a file with these tensors, named in this order: the length and the JSON. */
export function encodeHeader(
  tensors: readonly TensorSpecification[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  // Without a prototype every name is a member like any other, __proto__ too.
  const header: Record<string, unknown> = Object.create(null);
  if (Object.keys(metadata).length > 0) header[metadataKey] = metadata;
  const offsets = dataOffsets(tensors);
  for (const tensor of tensors) {
    const { name, dtype, shape } = tensor;
    if (name in header || name === metadataKey)
      throw new SafetensorsError(`"${name}" appears twice, or is reserved.`);
    header[name] = { dtype: fileNames[dtype], shape, data_offsets: offsets.get(tensor) };
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Math.ceil(json.length / alignment) * alignment;
  const bytes = Buffer.alloc(lengthBytes + padded, ' ');
  bytes.writeBigUInt64LE(BigInt(padded));
  json.copy(bytes, lengthBytes);
  return bytes;
}

/** Where the data of each tensor begin and end, counted from the first. */
function dataOffsets(tensors: readonly TensorSpecification[]): Map<TensorSpecification, [number, number]> {
  const offsets = new Map<TensorSpecification, [number, number]>();
  let end = 0;
  for (const tensor of inOrderOfData(tensors)) {
    const begin = end;
    end += sizeOf(tensor.shape) * byteSize(tensor.dtype);
    offsets.set(tensor, [begin, end]);
  }
  return offsets;
}

/** The JSON's length from a file's first 8 bytes. Throws a SafetensorsError if the file cannot hold it. */
export function decodeHeaderLength(file: string, first: Uint8Array, fileBytes: number): number {
  const length = Number(new DataView(first.buffer, first.byteOffset, lengthBytes).getBigUint64(0, true));
  if (length > maxHeaderBytes || lengthBytes + length > fileBytes) {
    throw new SafetensorsError(
      `${file} is no safetensors file, or is cut off: its header would take ${length} bytes, the file has ${fileBytes}. ` +
        'Fetch or write it anew.',
    );
  }
  return length;
}

/** Reads and checks the JSON. Throws a SafetensorsError that names the first thing wrong. */
export function decodeHeader(file: string, json: Uint8Array, fileBytes: number): SafetensorsHeader {
  const header = parseObject(file, json);
  const { [metadataKey]: metadata = {}, ...entries } = header;
  if (!isRecord(metadata) || !Object.values(metadata).every((value) => typeof value === 'string')) {
    throw new SafetensorsError(`${file}: ${metadataKey} must hold text alone, got ${inFewWords(metadata)}.`);
  }
  const dataStart = lengthBytes + json.length;
  const tensors = new Map(
    Object.entries(entries).map(([name, entry]) => [
      name,
      checkEntry(`${file}: "${name}"`, entry, dataStart),
    ]),
  );
  checkCoverage(file, tensors, dataStart, fileBytes);
  return { tensors, metadata: metadata as Record<string, string> };
}

function parseObject(file: string, json: Uint8Array): Record<string, unknown> {
  let text: string;
  let header: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(json);
    header = JSON.parse(text);
  } catch (cause) {
    throw new SafetensorsError(`${file} is no safetensors file: its header is not JSON.`, { cause });
  }
  if (!isRecord(header))
    throw new SafetensorsError(`${file} is no safetensors file: its header is not an object.`);
  const duplicate = findDuplicate(text);
  if (duplicate !== null) {
    throw new SafetensorsError(
      `${file}: "${duplicate}" appears twice in its header, which then says two things. Write the file anew.`,
    );
  }
  return header;
}

/** A name that one object of a JSON text has twice, of which JSON.parse would keep the last; null where there is none. */
function findDuplicate(json: string): string | null {
  // The names met so far of each object that is open; null for a list.
  const open: (Set<string> | null)[] = [];
  const marks = /[{}[\]"]/g;
  const colon = /[ \t\n\r]*:/y;
  for (let mark = marks.exec(json)?.[0]; mark; mark = marks.exec(json)?.[0]) {
    if (mark === '{') open.push(new Set());
    else if (mark === '[') open.push(null);
    else if (mark !== '"') open.pop();
    else {
      const begin = marks.lastIndex - 1;
      marks.lastIndex = colon.lastIndex = textEnd(json, begin);
      if (!colon.test(json)) continue;
      const name = JSON.parse(json.slice(begin, marks.lastIndex)) as string;
      const names = open.at(-1)!;
      if (names?.has(name)) return name;
      names?.add(name);
    }
  }
  return null;
}

/**
 * The position after the quote that closes the text whose first quote is at `begin`. A pattern with repeats would
 * overflow on long ones.
 */
function textEnd(json: string, begin: number): number {
  const marks = /["\\]/g;
  marks.lastIndex = begin + 1;
  while (marks.exec(json)?.[0] === '\\') marks.lastIndex++;
  return marks.lastIndex;
}

/** The beginning of a value as JSON, however large or deep it is. */
function inFewWords(value: unknown): string {
  const json = jsonOf(value);
  return json.length > 200 ? `${json.slice(0, 200)}…` : json;
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return 'what is nested too deeply';
  }
}

function checkEntry(where: string, entry: unknown, dataStart: number): SafetensorsEntry {
  const { dtype: fileName, shape, data_offsets: offsets } = isRecord(entry) ? entry : {};
  if (typeof fileName !== 'string' || !isIntegers(shape) || !isIntegers(offsets) || offsets.length !== 2) {
    throw new SafetensorsError(`${where} needs dtype, shape and data_offsets, got ${inFewWords(entry)}.`);
  }
  const dtype = dtypesByFileName.get(fileName);
  if (!dtype) {
    throw new SafetensorsError(
      `${where} is ${fileName}; readable are ${[...dtypesByFileName.keys()].join(', ')}.`,
    );
  }
  const byteLength = offsets[1]! - offsets[0]!;
  const expected = sizeOf(shape) * byteSize(dtype);
  if (byteLength !== expected) {
    throw new SafetensorsError(
      `${where} is ${fileName} ${formatShape(shape)}, ${expected} bytes, but its offsets span ${byteLength}.`,
    );
  }
  return { dtype, shape, byteOffset: dataStart + offsets[0]!, byteLength };
}

/** The format wants the tensors to fill the file without gaps and without overlap. */
function checkCoverage(
  file: string,
  tensors: ReadonlyMap<string, SafetensorsEntry>,
  dataStart: number,
  fileBytes: number,
): void {
  let end = dataStart;
  const ordered = [...tensors].sort(
    ([, a], [, b]) => a.byteOffset - b.byteOffset || a.byteLength - b.byteLength,
  );
  for (const [name, { byteOffset, byteLength }] of ordered) {
    if (byteOffset !== end) {
      throw new SafetensorsError(
        `${file}: "${name}" starts at byte ${byteOffset}, the one before it ends at ${end}.`,
      );
    }
    end += byteLength;
  }
  if (end !== fileBytes) {
    throw new SafetensorsError(
      `${file} is cut off or overlong: its tensors end at byte ${end}, the file at ${fileBytes}. Fetch or ` +
        'write it anew.',
    );
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether it is a list of whole numbers of zero or more. */
export function isIntegers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}
