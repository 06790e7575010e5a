import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// Stryker takes no mutators from plugins; those that it has are one array, which is no part of its exports.
const fromHere = createRequire(import.meta.url);
const fromCore = createRequire(fromHere.resolve('@stryker-mutator/core'));
const instrumenter = pathToFileURL(fromCore.resolve('@stryker-mutator/instrumenter'));
const { allMutators } = await import(new URL('./mutators/index.js', instrumenter).href);
const { types } = createRequire(instrumenter)('@babel/core');

/** Stryker's own, by their names. */
export const otherMutators = allMutators.map(({ name }) => name);

const opposites = { '===': '!==', '!==': '===' };
const quantifiers = new Map([['some', 'every'], ['every', 'some']]); // prettier-ignore
const boundaries = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' };

/** One condition that is wrong by a little: what a test that looks at two plain cases does not see. */
allMutators.push({
  name: 'Condition',
  *mutate(path) {
    const { node } = path;
    if (isTest(path)) yield types.unaryExpression('!', copyOf(node));
    else if (path.isBinaryExpression() && node.operator in opposites)
      yield types.binaryExpression(opposites[node.operator], copyOf(node.left), copyOf(node.right));
    if (path.isBinaryExpression() && node.operator in boundaries)
      yield types.binaryExpression(boundaries[node.operator], copyOf(node.left), copyOf(node.right));
    if (path.isLogicalExpression()) {
      yield copyOf(node.left);
      // Of a && b && c each is left out by itself: what is on the left of c has its own mutants.
      if (!types.isLogicalExpression(node.left, { operator: node.operator })) yield copyOf(node.right);
    }
    if (isExtremum(path)) for (const argument of node.arguments) yield copyOf(argument);
    const quantified = quantifiers.get(methodOf(path));
    if (quantified) {
      const replacement = copyOf(node);
      replacement.callee.property.name = quantified;
      yield replacement;
    }
  },
});

function copyOf(node) {
  return types.cloneNode(node, true);
}

/** Whether an expression is what an `if` or `? :` asks. */
function isTest({ node, parent }) {
  return (types.isIfStatement(parent) || types.isConditionalExpression(parent)) && parent.test === node;
}

function methodOf(path) {
  if (!path.isCallExpression() || !types.isMemberExpression(path.node.callee)) return null;
  return types.isIdentifier(path.node.callee.property) ? path.node.callee.property.name : null;
}

/** Math.min or Math.max of several arguments, none of which is spread. */
function isExtremum(path) {
  const method = methodOf(path);
  if (method !== 'min' && method !== 'max') return false;
  const { callee, arguments: given } = path.node;
  const isOfMath = types.isIdentifier(callee.object, { name: 'Math' });
  return isOfMath && given.length > 1 && !given.some((argument) => types.isSpreadElement(argument));
}
