/** What can be pickled. */
export type Picklable =
  null | boolean | number | string | readonly Picklable[] | { readonly [key: string]: Picklable };

const opcode = {
  proto: 0x80,
  stop: 0x2e,
  none: 0x4e,
  true: 0x88,
  false: 0x89,
  int32: 0x4a,
  uint8: 0x4b,
  uint16: 0x4d,
  long: 0x8a,
  float: 0x47,
  text: 0x58,
  emptyList: 0x5d,
  emptyDict: 0x7d,
  mark: 0x28,
  appends: 0x65,
  setItems: 0x75,
  put: 0x71,
  putLong: 0x72,
  get: 0x68,
  getLong: 0x6a,
} as const;

/** Items appended at once, as by Python's own writer: readers put each batch on a stack. */
const batch = 1000;

/**
 * `value` as a pickle of protocol 2, for Python's `pickle.load`: arrays become lists, objects dicts. A string, and an array or
 * object that occurs again, is written once. Whole numbers up to 2^53 become integers, all others floats. See
 * https://docs.python.org/3/library/pickletools.html.
 */
export function pickle(value: Picklable): Uint8Array {
  const writer = new PickleWriter();
  writer.write(value);
  return writer.finish();
}

class PickleWriter {
  #bytes = new Uint8Array(2 ** 16);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  readonly #memo = new Map<unknown, number>();

  constructor() {
    this.#byte(opcode.proto);
    this.#byte(2);
  }

  finish(): Uint8Array {
    this.#byte(opcode.stop);
    return this.#bytes.slice(0, this.#length);
  }

  write(value: Picklable): void {
    if (value === null) this.#byte(opcode.none);
    else if (typeof value === 'boolean') this.#byte(value ? opcode.true : opcode.false);
    else if (typeof value === 'number') this.#number(value);
    else if (!this.#writeAgain(value)) this.#writeNew(value);
  }

  #writeNew(value: Exclude<Picklable, null | boolean | number>): void {
    if (typeof value === 'string') {
      const text = Buffer.from(value);
      this.#byte(opcode.text);
      this.#uint32(text.length);
      this.#reserve(text.length);
      this.#bytes.set(text, this.#length);
      this.#length += text.length;
      this.#remember(value);
    } else if (Array.isArray(value)) {
      this.#byte(opcode.emptyList);
      this.#remember(value);
      this.#appendAll(value as readonly Picklable[]);
    } else {
      this.#byte(opcode.emptyDict);
      this.#remember(value);
      this.#byte(opcode.mark);
      for (const [key, item] of Object.entries(value)) {
        this.write(key);
        this.write(item);
      }
      this.#byte(opcode.setItems);
    }
  }

  #appendAll(items: readonly Picklable[]): void {
    for (let start = 0; start < items.length; start += batch) {
      this.#byte(opcode.mark);
      for (const item of items.slice(start, start + batch)) this.write(item);
      this.#byte(opcode.appends);
    }
  }

  #number(value: number): void {
    if (!Number.isSafeInteger(value)) {
      this.#byte(opcode.float);
      this.#reserve(8);
      this.#view.setFloat64(this.#length, value);
      this.#length += 8;
    } else if (value >= 0 && value < 2 ** 8) {
      this.#byte(opcode.uint8);
      this.#byte(value);
    } else if (value >= 0 && value < 2 ** 16) {
      this.#byte(opcode.uint16);
      this.#byte(value & 0xff);
      this.#byte(value >> 8);
    } else if (value >= -(2 ** 31) && value < 2 ** 31) {
      this.#byte(opcode.int32);
      this.#uint32(value);
    } else this.#long(value);
  }

  #long(value: number): void {
    this.#byte(opcode.long);
    this.#byte(8);
    this.#reserve(8);
    this.#view.setBigInt64(this.#length, BigInt(value), true);
    this.#length += 8;
  }

  #writeAgain(value: unknown): boolean {
    const index = this.#memo.get(value);
    if (index === undefined) return false;
    this.#indexed(opcode.get, opcode.getLong, index);
    return true;
  }

  #remember(value: unknown): void {
    this.#indexed(opcode.put, opcode.putLong, this.#memo.size);
    this.#memo.set(value, this.#memo.size);
  }

  #indexed(short: number, long: number, index: number): void {
    this.#byte(index < 256 ? short : long);
    if (index < 256) this.#byte(index);
    else this.#uint32(index);
  }

  #uint32(value: number): void {
    this.#reserve(4);
    this.#view.setInt32(this.#length, value, true);
    this.#length += 4;
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + count));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}
