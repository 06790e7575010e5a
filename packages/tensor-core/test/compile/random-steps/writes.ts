import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { type Drawing, type Drawn, isFloat, isSame } from './drawing.ts';
import type { Register } from './step-program.ts';

/** A write to all or a part of something; not recorded for a backward pass, unless histories may be written. */
export function drawWrite(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const target = drawing.pickWritable();
  if (!target) return null;
  const part = random.chance(0.3) ? rowsOf(drawing, target.shape) : null;
  const shape = part?.shape ?? target.shape;
  const [of, suffix] = [part?.of ?? ((x: Tensor) => x), part?.text ?? ''];
  const isRecorded = !drawing.isWithoutGrad && !drawing.leftOut.has('histories') && random.chance(0.1);
  const recorded = (write: () => void) => (isRecorded ? write() : t.noGrad(write));
  const prefix = isRecorded || drawing.isWithoutGrad ? '' : 'noGrad: ';
  if (random.chance(0.15)) {
    const value = random.pick([0, 0.5]);
    return {
      operands: [target],
      text: ([a]) => `${prefix}fillInPlace(${a}${suffix}, ${value})`,
      run: ([a]) => (recorded(() => t.fillInPlace(of(a!), value)), null),
    };
  }
  const isFit = (each: Register) => each.dtype === target.dtype && isSame(each.shape, shape);
  // A source with a history, where histories are written.
  const tracked = isRecorded ? drawing.pick((each) => each.isTracked && isFit(each)) : null;
  const source = tracked ?? drawing.pick((each) => isFloat(each) && isFit(each));
  if (!source) return null;
  const name = random.chance(0.6) ? 'addInPlace' : 'copyInPlace';
  return {
    operands: [target, source],
    mayBeRefused: isRecorded,
    text: ([a, b]) => `${prefix}${name}(${a}${suffix}, ${b})`,
    run: ([a, b]) => (recorded(() => t[name](of(a!), b!)), null),
  };
}

function rowsOf({ random }: Drawing, shape: t.Shape) {
  if (shape.length === 0) return null;
  const start = random.integer(0, shape[0]! - 1);
  const end = random.integer(start + 1, shape[0]!);
  return {
    shape: [end - start, ...shape.slice(1)],
    text: `[${start}:${end}]`,
    of: (x: Tensor) => t.slice(x, 0, start, end),
  };
}
