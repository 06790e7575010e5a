/** A training went wrong: it is stopped, and the last checkpoint is good. */
export class DivergenceError extends Error {
  override readonly name = 'DivergenceError';
}

/** Steps over which the usual loss is averaged, and before which none is known. */
const usualSteps = 50;
/** Losses of small batches lie far apart: so many standard deviations are noise. */
const noiseDeviations = 6;

/** Tells a training that goes wrong by its losses. */
export class LossWatch {
  readonly #spike: number;
  readonly #checksNorm: boolean;
  #usual = 0;
  #variance = 0;
  #seen = 0;

  /** `spike` is how far beyond the noise above the usual a loss may be, in nats, 0 for any; loss scaling expects gradients that overflow. */
  constructor({ spike, checksNorm }: { readonly spike: number; readonly checksNorm: boolean }) {
    this.#spike = spike;
    this.#checksNorm = checksNorm;
  }

  /** Throws a DivergenceError for a loss or norm that is not finite, and for a loss far above the usual. */
  see(step: number, loss: number, gradientNorm: number | null): void {
    if (!Number.isFinite(loss)) throw new DivergenceError(`Step ${step}: the loss is ${loss}.`);
    if (this.#checksNorm && gradientNorm !== null && !Number.isFinite(gradientNorm))
      throw new DivergenceError(
        `Step ${step}: the norm of the gradients is ${gradientNorm}, at a loss of ${loss.toFixed(2)}.`,
      );
    const isKnown = this.#seen >= usualSteps;
    const highest = this.#usual + noiseDeviations * Math.sqrt(this.#variance) + this.#spike;
    if (isKnown && this.#spike > 0 && loss > highest) {
      throw new DivergenceError(
        `Step ${step}: the loss is ${loss.toFixed(2)}, more than ${this.#spike} nats beyond the noise above the usual ${this.#usual.toFixed(2)}.`,
      );
    }
    this.#learn(loss);
  }

  /** Mean and variance, in which later losses weigh more (West 1979). */
  #learn(loss: number): void {
    const weight = 1 / Math.min(++this.#seen, usualSteps);
    const difference = loss - this.#usual;
    this.#usual += weight * difference;
    this.#variance = (1 - weight) * (this.#variance + weight * difference ** 2);
  }
}
