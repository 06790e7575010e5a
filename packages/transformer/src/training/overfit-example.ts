/**
 * A text that a model can know by heart, byte by byte, and a model small enough to learn it in a minute on two cores:
 * from a loss of ln 256 = 5.5 nats to almost nothing in 200 steps.
 */
export const overfitExample = {
  text:
    'It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, ' +
    'it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of ' +
    'Darkness, it was the spring of hope, it was the winter of despair.',
  config: {
    vocabularySize: 256,
    contextLength: 64,
    modelDimension: 64,
    feedForwardDimension: 192,
    layers: 2,
    heads: 4,
  },
  batch: 8,
} as const;
