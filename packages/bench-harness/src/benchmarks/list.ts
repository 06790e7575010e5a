// Every benchmark, one line each: `roofline`, its records, its reports and its pipelines know no other list.
export { allreduce } from './allreduce/entry.ts';
export { attention } from './attention/entry.ts';
export { compile } from './compile/entry.ts';
export { ddp } from './ddp/entry.ts';
export { e2e } from './e2e/entry.ts';
export { flash } from './flash/entry.ts';
export { memory } from './memory/entry.ts';
export { overhead } from './overhead/entry.ts';
export { precision } from './precision/entry.ts';
export { profile } from './profile/entry.ts';
export { tiles } from './tiles/entry.ts';
export { warmup } from './warmup/entry.ts';
