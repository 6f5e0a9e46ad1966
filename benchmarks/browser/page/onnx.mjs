/** Graphs for onnxruntime-web, written as the bytes of their Protocol Buffers (onnx.proto3). */

const FLOAT = 1;
const ATTRIBUTE_FLOAT = 1;
const ATTRIBUTE_INT = 2;
const ATTRIBUTE_INTS = 7;
const IR_VERSION = 9;
const OPSET = 17;

const encoder = new TextEncoder();

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Uint8Array.of(...bytes, Number(rest));
}

function concat(parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

const integer = (field, value) => concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => concat([varint((field << 3) | 2), varint(value.length), value]);
const text = (field, value) => bytes(field, encoder.encode(value));
const message = (field, ...parts) => bytes(field, concat(parts));
const float = (field, value) =>
  concat([varint((field << 3) | 5), new Uint8Array(Float32Array.of(value).buffer)]);

const floatAttribute = (name, value) =>
  message(5, text(1, name), float(2, value), integer(20, ATTRIBUTE_FLOAT));
const intAttribute = (name, value) =>
  message(5, text(1, name), integer(3, value), integer(20, ATTRIBUTE_INT));
const intsAttribute = (name, values) =>
  message(5, text(1, name), ...values.map((v) => integer(8, v)), integer(20, ATTRIBUTE_INTS));

const node = (operator, inputs, output, ...attributes) =>
  message(
    1,
    ...inputs.map((name) => text(1, name)),
    text(2, output),
    text(4, operator),
    ...attributes,
  );

const initializer = (name, [data, shape]) =>
  message(
    5,
    ...shape.map((extent) => integer(1, extent)),
    integer(2, FLOAT),
    text(8, name),
    bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  );

const indices = (name, values) =>
  message(
    5,
    integer(1, values.length),
    integer(2, 7),
    text(8, name),
    bytes(9, new Uint8Array(BigInt64Array.from(values, BigInt).buffer)),
  );

const valueInfo = (field, name, shape) => {
  const dimensions = (shape ?? []).map((extent) => message(1, integer(1, extent)));
  const tensor = message(1, integer(1, FLOAT), ...(shape ? [message(2, ...dimensions)] : []));
  return message(field, text(1, name), message(2, tensor));
};

/** Computations whose result can be the first input of the next copy. */
const STEPS = {
  matmul: (x, [b], y) => [node("MatMul", [x, b], y)],
  bmm_relu: (x, [b], y) => [node("MatMul", [x, b], `${y}_product`), node("Relu", [`${y}_product`], y)],
  relu: (x, _, y) => [node("Relu", [x], y)],
  add: (x, [b], y) => [node("Add", [x, b], y)],
  softmax: (x, _, y) => [node("Softmax", [x], y, intAttribute("axis", -1))],
  layer_norm: (x, [scale, shift], y) => [
    node("LayerNormalization", [x, scale, shift], y, intAttribute("axis", -1), floatAttribute("epsilon", 1e-5)),
  ],
};

/** Computations with weights, whose copies go side by side, each with weights of its own. */
const BRANCHES = {
  mlp: (x, [w0, b0, w1, b1], y) => [
    node("Gemm", [x, w0, b0], `${y}_sum`, intAttribute("transB", 1)),
    node("Relu", [`${y}_sum`], `${y}_hidden`),
    node("Gemm", [`${y}_hidden`, w1, b1], y, intAttribute("transB", 1)),
  ],
  mean: (x, _, y) => [
    node("ReduceMean", [x], y, intsAttribute("axes", [1]), intAttribute("keepdims", 0)),
  ],
  conv2d: (x, [w], y) => [node("Conv", [x, w], y, intsAttribute("kernel_shape", [3, 3]))],
};

/** A model of `copies` copies of an operator, and what to feed it with. */
export function chain(operator, inputs, copies) {
  const parts = operator in STEPS ? inARow(STEPS[operator], inputs, copies) : sideBySide(BRANCHES[operator], inputs, copies);
  const graph = message(7, ...parts.nodes, text(2, operator), ...parts.rest);
  const opset = message(8, text(1, ""), integer(2, OPSET));
  return { model: concat([integer(1, IR_VERSION), graph, opset]), feeds: parts.feeds };
}

function inARow(step, inputs, copies) {
  const names = inputs.map((_, index) => `input${index}`);
  const nodes = [];
  let value = names[0];
  for (let copy = 0; copy < copies; copy++) {
    const output = copy === copies - 1 ? "result" : `value${copy}`;
    nodes.push(...step(value, names.slice(1), output));
    value = output;
  }
  return {
    nodes,
    rest: [
      ...names.map((name, index) => valueInfo(11, name, inputs[index][1])),
      valueInfo(12, "result", inputs[0][1]),
    ],
    feeds: Object.fromEntries(names.map((name, index) => [name, inputs[index]])),
  };
}

function sideBySide(branch, [image, ...weights], copies) {
  const nodes = [];
  const rest = [valueInfo(11, "input", image[1]), valueInfo(12, "result")];
  for (let copy = 0; copy < copies; copy++) {
    const names = weights.map((_, index) => `weight${copy}_${index}`);
    // Equal weights would make equal nodes, of which the engine would keep one.
    const factor = 1 + copy / 64;
    weights.forEach(([data, shape], index) => {
      rest.push(initializer(names[index], [data.map((x) => x * factor), shape]));
    });
    const output = copy === 0 ? "result" : `value${copy}`;
    nodes.push(...branch("input", names, output));
    if (copy > 0) {
      // A result that nobody wants would not be computed: one number of it leaves the graph.
      nodes.push(node("Slice", [output, "from", "to"], `sample${copy}`));
      rest.push(valueInfo(12, `sample${copy}`));
    }
  }
  if (copies > 1) {
    const rank = 1 + (image[1].length > 2 ? 3 : 1);
    rest.push(indices("from", Array(rank).fill(0)), indices("to", Array(rank).fill(1)));
  }
  return { nodes, rest, feeds: { input: image } };
}
