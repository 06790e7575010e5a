import { afterAll, expect } from 'vitest';

// Files of tests that share a process leave its environment as they find it, but for what ONNX Runtime's loading sets.
const before = { ...process.env };
afterAll(() => {
  const names = new Set([...Object.keys(before), ...Object.keys(process.env)]);
  names.delete('ORT_DISABLE_TELEMETRY');
  expect([...names].filter((name) => process.env[name] !== before[name])).toEqual([]);
});
