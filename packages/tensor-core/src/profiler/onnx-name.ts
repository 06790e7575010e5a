import { lowerToGraph } from '../cpu/op-graph.ts';
import type { OpCall } from './op-recorder.ts';

/** Names what a call on the CPU runs: its ONNX nodes in order, or the op itself where it runs in JavaScript. */
export class OnnxNames {
  readonly #names = new Map<string, string>();

  nameOf(call: OpCall): string {
    const { op, inputs, outputs, attributes } = call;
    const variant = op.variant ? op.variant(attributes as never) : JSON.stringify(attributes);
    const key = JSON.stringify([op.name, variant, inputs, outputs]);
    let name = this.#names.get(key);
    if (name === undefined) this.#names.set(key, (name = makeName(call)));
    return name;
  }
}

function makeName({ op, inputs, outputs, attributes }: OpCall): string {
  const lowering = op.cpu;
  if (lowering.kind === 'host') return `${op.name} (JavaScript)`;
  const { graph } = lowerToGraph(op, lowering, inputs, outputs, attributes as never);
  return foldRepeats(graph.operations.map(({ opType }) => opType)).join(' ') || op.name;
}

/** `Mul Mul Add` becomes `2×Mul Add`. */
function foldRepeats(names: readonly string[]): string[] {
  const runs: { name: string; count: number }[] = [];
  for (const name of names) {
    const last = runs.at(-1);
    if (last?.name === name) last.count++;
    else runs.push({ name, count: 1 });
  }
  return runs.map(({ name, count }) => (count > 1 ? `${count}×${name}` : name));
}
