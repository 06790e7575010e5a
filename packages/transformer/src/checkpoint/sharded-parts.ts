import { type Tensor, copyInPlace, fromBytes, isFloatingPoint, noGrad, scope } from '@roofline/tensor-core';
import { valueBeyond } from '@roofline/tensor-core/kernel-api';
import type { SafetensorsEntry } from './safetensors-header.ts';
import { SafetensorsFile } from './safetensors.ts';
import { StateError } from '../module/state.ts';

/** Which elements of a flattened tensor of `shape`, or of a box of it, a part holds. */
export interface PartPlace {
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
  /** The elements along one dimension that a division over ranks has, as of tensor parallel layers. */
  readonly box?: { readonly dimension: number; readonly from: number; readonly to: number };
}

interface StoredPart extends PartPlace {
  readonly file: SafetensorsFile;
  readonly entry: SafetensorsEntry;
}

/** The name under which the metadata of a file say where its parts belong. */
export const placesKey = 'parts';

/** Tensors that lie in one file whole, or in several in parts. */
export class StoredTensors {
  readonly #files: readonly SafetensorsFile[];
  readonly #parts = new Map<string, StoredPart[]>();

  constructor(paths: readonly string[]) {
    this.#files = openAll(paths);
    for (const file of this.#files) {
      const places = JSON.parse(file.metadata[placesKey] ?? '{}') as Record<string, PartPlace>;
      for (const [name, entry] of file.tensors) {
        const size = entry.shape.reduce((product, length) => product * length, 1);
        const place = places[name] ?? { shape: entry.shape, start: 0, end: size };
        const parts = this.#parts.get(name);
        if (parts) parts.push({ ...place, file, entry });
        else this.#parts.set(name, [{ ...place, file, entry }]);
      }
    }
  }

  get names(): string[] {
    return [...this.#parts.keys()];
  }

  /** The texts of all files under a name. */
  texts(name: string): string[] {
    return this.#files.flatMap(({ metadata }) => metadata[name] ?? []);
  }

  get metadata(): Readonly<Record<string, string>> {
    return this.#files[0]!.metadata;
  }

  /** Why elements of a tensor cannot be read; null where they can. */
  misfit(name: string, place: PartPlace): string | null {
    const { shape, start, end } = place;
    const parts = this.#parts.get(name);
    if (!parts) return `there is no "${name}"`;
    const [{ shape: stored, entry }] = parts as [StoredPart];
    if (JSON.stringify(stored) !== JSON.stringify(shape))
      return `"${name}" is [${stored.join(', ')}], the model's [${shape.join(', ')}]`;
    // A rank's part of a parameter is float32.
    if (!isFloatingPoint(entry.dtype)) return `"${name}" is ${entry.dtype}, the model's float32`;
    let missing = end - start;
    for (const part of parts) for (const { length } of overlapsOf(part, place)) missing -= length;
    return missing === 0 ? null : `"${name}" lacks ${missing} of the elements ${start} to ${end}`;
  }

  /** Copies elements of a tensor into `target`, which has as many. Throws a StateError for a value beyond its dtype. */
  read(name: string, place: PartPlace, target: Tensor): void {
    const parts = this.#parts.get(name)!;
    const [{ entry, ...first }] = parts as [StoredPart];
    const bytesEach = entry.byteLength / (first.end - first.start);
    const bytes = new Uint8Array((place.end - place.start) * bytesEach);
    for (const part of parts)
      for (const { inStored, inWanted, length } of overlapsOf(part, place))
        bytes.set(part.file.readRange(name, inStored * bytesEach, length * bytesEach), inWanted * bytesEach);
    copyBytes(name, bytes, entry, target);
  }

  close(): void {
    for (const file of this.#files) file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Neighbouring elements of a tensor: where they begin in the part that holds them, and in the flattened tensor. */
interface Run {
  readonly inPart: number;
  readonly inTensor: number;
  readonly length: number;
}

/** The elements of a part in runs, in order. Those of a box are in one for each row of the dimensions before its own. */
function runsOf({ shape, start, end, box }: PartPlace): Run[] {
  if (!box) return [{ inPart: 0, inTensor: start, length: end - start }];
  const inner = shape.slice(box.dimension + 1).reduce((product, length) => product * length, 1);
  const [width, pitch] = [(box.to - box.from) * inner, shape[box.dimension]! * inner];
  const runs: Run[] = [];
  for (let at = start; at < end;) {
    const [row, column] = [Math.floor(at / width), at % width];
    const length = Math.min(end - at, width - column);
    runs.push({ inPart: at - start, inTensor: row * pitch + box.from * inner + column, length });
    at += length;
  }
  return runs;
}

/** What a stored part has of the elements that are wanted. */
function* overlapsOf(
  stored: PartPlace,
  wanted: PartPlace,
): Generator<{ readonly inStored: number; readonly inWanted: number; readonly length: number }> {
  const [theirs, ours] = [runsOf(stored), runsOf(wanted)];
  for (let i = 0, j = 0; i < theirs.length && j < ours.length;) {
    const [a, b] = [theirs[i]!, ours[j]!];
    const [from, to] = [
      Math.max(a.inTensor, b.inTensor),
      Math.min(a.inTensor + a.length, b.inTensor + b.length),
    ];
    if (from < to)
      yield {
        inStored: a.inPart + from - a.inTensor,
        inWanted: b.inPart + from - b.inTensor,
        length: to - from,
      };
    if (to === a.inTensor + a.length) i++;
    else j++;
  }
}

function openAll(paths: readonly string[]): SafetensorsFile[] {
  const files: SafetensorsFile[] = [];
  try {
    for (const path of paths) files.push(new SafetensorsFile(path));
    return files;
  } catch (error) {
    for (const file of files) file.close();
    throw error;
  }
}

function copyBytes(name: string, bytes: Uint8Array, { dtype }: SafetensorsEntry, target: Tensor): void {
  noGrad(() =>
    scope(() => {
      const read = fromBytes(bytes, target.shape, { dtype, device: target.device });
      const beyond = valueBeyond(read, target.dtype);
      if (beyond !== null) {
        throw new StateError(
          `loading "${name}": it holds ${beyond} in ${dtype}, which is beyond ${target.dtype}, the dtype of its parameter; scale or clamp ` +
            'the values.',
        );
      }
      copyInPlace(target, read);
    }),
  );
}

/** Throws a StateError that lists `complaints`, where there are any. */
export function refuseMisfits(path: string, complaints: readonly string[]): void {
  if (complaints.length === 0) return;
  const shown =
    complaints.length > 8 ? [...complaints.slice(0, 8), `${complaints.length - 8} more`] : complaints;
  throw new StateError(`${path} does not fit the model: ${shown.join('; ')}.`);
}
