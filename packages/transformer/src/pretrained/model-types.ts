/** The types of models, as `transformers` names them, that are read and written. */
export const modelTypes = ['llama', 'mistral', 'qwen2', 'qwen3', 'gpt2'] as const;
/** A type of model, as `transformers` names it. */
export type ModelType = (typeof modelTypes)[number];
