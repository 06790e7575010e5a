import {
  type Device,
  type Tensor,
  copyInPlace,
  fromBytes,
  noGrad,
  scope,
  slice,
} from '@roofline/tensor-core';
import type { SafetensorsEntry } from './safetensors-header.ts';
import { SafetensorsFile } from './safetensors.ts';
import { StateError } from '../module/state.ts';

/** Which elements of a flattened tensor of `shape` a part holds. */
export interface PartPlace {
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
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
  misfit(name: string, { shape, start, end }: PartPlace): string | null {
    const parts = this.#parts.get(name);
    if (!parts) return `there is no "${name}"`;
    const [{ shape: stored }] = parts as [StoredPart];
    if (JSON.stringify(stored) !== JSON.stringify(shape))
      return `"${name}" is [${stored.join(', ')}], the model's [${shape.join(', ')}]`;
    let missing = end - start;
    for (const part of parts) missing -= Math.max(0, Math.min(end, part.end) - Math.max(start, part.start));
    return missing === 0 ? null : `"${name}" lacks ${missing} of the elements ${start} to ${end}`;
  }

  /** Copies elements of a tensor into `target`, one-dimensional. */
  read(name: string, { start, end }: PartPlace, target: Tensor): void {
    for (const { file, entry, ...part } of this.#parts.get(name)!) {
      const [from, to] = [Math.max(start, part.start), Math.min(end, part.end)];
      if (from >= to) continue;
      const bytesEach = entry.byteLength / (part.end - part.start);
      const bytes = file.readRange(name, (from - part.start) * bytesEach, (to - from) * bytesEach);
      copyBytes(bytes, entry, slice(target, 0, from - start, to - start), target.device);
    }
  }

  close(): void {
    for (const file of this.#files) file.close();
  }

  [Symbol.dispose](): void {
    this.close();
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

function copyBytes(bytes: Uint8Array, { dtype }: SafetensorsEntry, target: Tensor, device: Device): void {
  noGrad(() => scope(() => copyInPlace(target, fromBytes(bytes, target.shape, { dtype, device }))));
}

/** Throws a StateError that lists `complaints`, where there are any. */
export function refuseMisfits(path: string, complaints: readonly string[]): void {
  if (complaints.length === 0) return;
  const shown =
    complaints.length > 8 ? [...complaints.slice(0, 8), `${complaints.length - 8} more`] : complaints;
  throw new StateError(`${path} does not fit the model: ${shown.join('; ')}.`);
}
