/** Environment variables, such as `process.env`; spelt out so that our types do not ask for Node's. */
export type Environment = Readonly<Record<string, string | undefined>>;
