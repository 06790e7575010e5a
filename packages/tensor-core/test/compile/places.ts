import * as t from '../../src/index.ts';

// Prints the message of each fault, by its name. The line that a message must name ends with a comment of that name.

const weight = t.tensor([1, 2, 3]).requiresGrad_();
const total = t.zeros([3]);
const kept: t.Tensor[] = [];
const x = t.ones([3]);

/** Layers of a model come between a function and the ops. */
function layer(input: t.Tensor): t.Tensor {
  return t.scope(() => t.range('layer', () => t.mul(input, weight)));
}

const adds = t.compile((y: t.Tensor) => {
  t.mul(y, 3);
  t.addInPlace(total, y); // shared with what is captured, held
  return t.mul(y, 2);
});
const both = t.compile((y: t.Tensor, z: t.Tensor) => {
  t.mul(y, z);
  t.addInPlace(y, z); // shared among arguments
});

const faults: Record<string, () => unknown> = {
  'read by the host': () => t.compile((y: t.Tensor) => t.mul(y, y.toFlatArray()[0]!))(x), // read by the host
  'values of the host': () =>
    t.compile((y: t.Tensor) => {
      const list = [4, 5, 6];
      return t.mul(y, t.tensor(list)); // values of the host
    })(x),
  history: () => t.compile((y: t.Tensor) => layer(y))(x), // history
  hook() {
    const remove = weight.onGradientAccumulated(() => {});
    try {
      t.compile((y: t.Tensor) => {
        const loss = t.sum(layer(y));
        loss.backward(); // hook
      })(x);
    } finally {
      remove();
    }
  },
  'freed gradient'() {
    const f = t.compile((y: t.Tensor) => {
      weight.grad = t.exp(y);
    });
    f(x); // freed gradient
  },
  'stays behind'() {
    const f = t.compile((y: t.Tensor) => {
      kept.push(t.keep(t.exp(y))); // stays behind
    });
    for (let i = 0; i < 8; i++) f(x);
  },
  'no tensor': () => t.compile((y: t.Tensor) => [t.exp(y), 5])(x), // no tensor
  'argument with a history': () => adds(t.mul(weight, 2)), // argument with a history
  'shared with what is captured'() {
    for (let i = 0; i < 2; i++) adds(x);
    adds(total);
  },
  'shared among arguments'() {
    for (let i = 0; i < 2; i++) both(t.ones([3]), x);
    both(x, t.alias(x));
  },
  held() {
    const release = total.storage.hold({ start: 0, end: 12 }, 'allReduce');
    try {
      adds(x);
    } finally {
      release();
    }
  },
};

const messages = Object.entries(faults).map(([name, cause]) => {
  try {
    cause();
    return [name, 'nothing was thrown'];
  } catch (error) {
    return [name, (error as Error).message];
  }
});
console.log(JSON.stringify(Object.fromEntries(messages)));
