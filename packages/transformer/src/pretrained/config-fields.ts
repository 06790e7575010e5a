import { RooflineError, describeValue } from '@roofline/tensor-core';

/** A config of `transformers` that cannot be read, or asks for what models here do not have; it names the field and its value. */
export class PretrainedConfigError extends RooflineError {
  constructor(message: string) {
    super('PRETRAINED_CONFIG', message);
  }
}

/** The fields of a config.json, each of which says what it was read as; those that nothing has read are listed at the end. */
export class ConfigFields {
  readonly #path: string;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #read = new Set<string>();

  constructor(path: string, fields: Readonly<Record<string, unknown>>) {
    this.#path = path;
    this.#fields = fields;
  }

  /** The value; null counts as left out, as in Python. */
  value(name: string): unknown {
    this.#read.add(name);
    return this.#fields[name] ?? undefined;
  }

  /** Whether it is there, null or not: a null switches off what there would be without it. */
  has(name: string): boolean {
    return Object.hasOwn(this.#fields, name);
  }

  text(name: string, otherwise?: string): string {
    return this.#of(name, otherwise, (value) => typeof value === 'string', 'a text');
  }

  count(name: string, otherwise?: number): number {
    const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
    return this.#of(name, otherwise, isCount, 'a whole number of one or more');
  }

  number(name: string, otherwise?: number): number {
    return this.#of(name, otherwise, (value) => typeof value === 'number', 'a number');
  }

  flag(name: string, otherwise: boolean): boolean {
    return this.#of(name, otherwise, (value) => typeof value === 'boolean', 'true or false');
  }

  /** Fields of a field; none where it is left out. */
  object(name: string): ConfigFields {
    const isObject = (value: unknown) => typeof value === 'object' && !Array.isArray(value);
    return new ConfigFields(
      `${this.#path}: ${name}`,
      this.#of<Record<string, unknown>>(name, {}, isObject, 'an object'),
    );
  }

  /** Throws a PretrainedConfigError unless the field is left out or has one of these values; `remedy` says what to do. */
  mustBe(name: string, accepted: readonly unknown[], remedy: string): void {
    const value = this.value(name);
    if (value === undefined || accepted.includes(value)) return;
    throw this.refusal(name, `is not supported: ${remedy}`);
  }

  /** An error about a field and its value. */
  refusal(name: string, problem: string): PretrainedConfigError {
    const value = JSON.stringify(this.#fields[name]);
    return new PretrainedConfigError(`${this.#path}: ${name} ${value} ${problem}.`);
  }

  /** Fields that nothing has read, with their values, but for those of `known`. */
  unread(known: ReadonlySet<string>): string[] {
    return Object.entries(this.#fields)
      .filter(([name, value]) => !this.#read.has(name) && !known.has(name) && value !== null)
      .map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  }

  #of<T>(name: string, otherwise: T | undefined, fits: (value: unknown) => boolean, what: string): T {
    const value = this.value(name) ?? otherwise;
    if (value === undefined)
      throw new PretrainedConfigError(`${this.#path} has no ${name}, which the model needs.`);
    if (fits(value)) return value as T;
    throw new PretrainedConfigError(`${this.#path}: ${name} must be ${what}, not ${describeValue(value)}.`);
  }
}
