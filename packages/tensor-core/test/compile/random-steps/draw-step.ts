import type { DType, Shape } from '../../../src/index.ts';
import { RandomSource } from '../../differential/programs/random-source.ts';
import { drawTensor } from '../../differential/programs/tensor-input.ts';
import { type Drawn, Drawing, type Kind, isFloat } from './drawing.ts';
import { makers } from './instructions.ts';
import { motifs, projections } from './motifs.ts';
import type { GivenTensor, HostAction, Placement, StepProgram } from './step-program.ts';
import { drawBackward, drawGradient, drawUpdate, forgetting } from './training.ts';
import type { Trainer } from './world.ts';
import { drawWrite } from './writes.ts';

// Lengths that fill a kernel's vectors, one more or less, and ones that fill none.
const rowCounts = [1, 2, 3, 4, 5, 8, 9, 16, 17, 33];
const columnCounts = [1, 2, 3, 7, 8, 15, 16, 17, 24, 31, 32, 33, 64, 65, 128];
// For symbolic runs.
const fewRows = [1, 2, 3, 4, 8, 8];
const fewColumns = [1, 3, 8, 8, 8, 16, 16];

const dtypes: readonly (readonly [number, DType])[] = [
  [6, 'float32'],
  [1, 'float64'],
  [2, 'float16'],
  [2, 'bfloat16'],
];

const dtypesOfSymbols: readonly (readonly [number, DType])[] = [
  [3, 'float32'],
  [3, 'float16'],
  [3, 'bfloat16'],
];

/** Which programs are drawn. */
export interface DrawOptions {
  readonly leftOut: ReadonlySet<Kind>;
  readonly trainers: readonly Trainer[];
  /** Whether tensors are small, and products of low precision are drawn too, for symbolic runs. */
  readonly isSymbolic?: boolean;
}

/** A program that is decided by its seed and the options. */
export function drawStep(seed: number, { leftOut, trainers, isSymbolic = false }: DrawOptions): StepProgram {
  const random = new RandomSource('step', seed);
  const rows = random.pick(isSymbolic ? fewRows : rowCounts);
  const columns = random.pick(isSymbolic ? fewColumns : columnCounts);
  const shape = { rows, columns: random.chance(0.2) ? rows : columns };
  const isWithoutGrad = random.chance(0.35);
  const dtype = random.weighted(isSymbolic ? dtypesOfSymbols : dtypes);
  const drawing = new Drawing(random, shape, { dtype, isWithoutGrad, leftOut, hasLowProducts: isSymbolic });
  const memory = drawMemory(drawing, trainers.length > 0);
  const trainer = !isWithoutGrad && trainers.length > 0 ? random.integer(0, trainers.length - 1) : null;
  if (isWithoutGrad) drawInstructions(drawing, random.integer(3, 14), 0.3);
  else drawTraining(drawing, trainers, trainer);
  return {
    seed,
    ...memory,
    isWithoutGrad,
    instructions: drawing.instructions,
    results: drawResults(drawing),
    hostActions: drawHostActions(random),
    trainer,
  };
}

function drawMemory(drawing: Drawing, hasTrainers: boolean) {
  const { random, rows, columns, dtype, leftOut } = drawing;
  const matrix = [rows, columns];
  const given = (
    role: 'argument' | 'buffer' | 'parameter',
    shape: Shape,
    own: DType,
    { views = false, indicesBelow = null as number | null } = {},
  ): GivenTensor => {
    const input = drawTensor(random, { dtype: own, shape, values: 'ordinary', requiresGrad: false, views });
    const isWritable = !input.views.some(({ torch }) => torch.startsWith('.expand'));
    return { register: drawing.given(role, { shape, dtype: own, isWritable }), input, indicesBelow };
  };
  const views = !leftOut.has('strided-arguments');
  const lower = random.chance(0.2) ? 'bfloat16' : dtype;
  const args = [matrix, ...[matrix, [columns], [rows, 1], []].filter(() => random.chance(0.35))];
  const angles = columns % 2 === 0 ? [[rows, columns / 2]] : [];
  // Optimizers take only float32.
  const wide = dtype === 'float64' && !hasTrainers ? 'float64' : 'float32';
  const weights = [[columns], [columns], [columns, columns], matrix];
  return {
    arguments: args.map((shape) => given('argument', shape, random.chance(0.8) ? dtype : lower, { views })),
    buffers: [
      given('buffer', [rows], 'int64', { indicesBelow: rows }),
      given('buffer', matrix, dtype, { views: random.chance(0.5) }),
      given('buffer', [columns], dtype),
      ...angles.map((shape) => given('buffer', shape, 'float32')),
    ],
    parameters: weights.map((shape) => given('parameter', shape, wide)),
    parameterPlacement: drawPlacement(random),
    gradientPlacement: random.chance(0.4) ? drawPlacement(random) : null,
  };
}

function drawPlacement(random: RandomSource): Placement {
  return random.weighted<Placement>([
    [5, 'apart'],
    [4, 'one buffer'],
    [1, 'one buffer, not aligned'],
  ]);
}

/** So many instructions, of which some write. */
function drawInstructions(drawing: Drawing, count: number, writes: number): void {
  const { random } = drawing;
  for (let tries = 0; count > 0 && tries < 200; tries++) {
    const maker = makerOf(drawing);
    const drawn = random.chance(writes) ? drawWrite(drawing) : maker(drawing);
    if (!drawn || isLarge(drawn.shape)) continue;
    drawing.add(drawn);
    count--;
  }
}

/** In symbolic runs, what passes look for is drawn more often: nothing has to be compiled for it. */
function makerOf({ random, hasLowProducts, dtype }: Drawing): (drawing: Drawing) => Drawn | null {
  const isOfProducts = hasLowProducts && dtype === 'float16';
  if (isOfProducts && random.chance(0.4)) return projections;
  return random.chance(hasLowProducts ? 0.4 : 0.1) ? random.pick(motifs) : random.weighted(makers);
}

function isLarge(shape: Shape = []): boolean {
  return shape.length > 4 || shape.reduce((size, length) => size * length, 1) > 2 ** 15;
}

/** One or two passes forward and backward, what becomes of the gradients, and what follows. */
function drawTraining(drawing: Drawing, trainers: readonly Trainer[], trainer: number | null): void {
  const { random } = drawing;
  if (random.chance(0.25)) drawing.add(forgetting(drawing));
  const passes = random.chance(0.25) ? 2 : 1;
  let loss: number | null = null;
  for (let pass = 0; pass < passes; pass++) {
    drawInstructions(drawing, random.integer(3, 10), 0.1);
    const backward = drawBackward(drawing);
    if (backward) loss = drawing.add(backward)!.id;
  }
  if (loss === null) return;
  drawInstructions(drawing, random.integer(0, 2), 0.5);
  if (random.chance(0.3)) drawing.add(drawGradient(drawing));
  if (random.chance(0.8)) drawing.add(drawUpdate(drawing, loss, trainers, trainer));
  if (random.chance(0.3)) drawing.add(drawGradient(drawing));
  if (random.chance(0.5)) drawing.add(forgetting(drawing));
  drawInstructions(drawing, random.integer(0, 3), 0.4);
}

/** The last value, and some others. */
function drawResults({ random, registers }: Drawing): number[] {
  const made = registers.filter((each) => isFloat(each) && each.name.startsWith('r'));
  const chosen = made.filter((_, i) => i === made.length - 1 || random.chance(0.25));
  return chosen.map(({ id }) => id);
}

function drawHostActions(random: RandomSource): Map<number, HostAction> {
  const actions = new Map<number, HostAction>();
  for (const call of [2, 3])
    if (random.chance(0.2))
      actions.set(
        call,
        random.pick<HostAction>(['writes parameters', 'writes buffers', 'forgets gradients']),
      );
  return actions;
}
