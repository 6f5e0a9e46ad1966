/** The JavaScript halves of Python's host, which are part of the Python package. */
declare module "*/page_script.js" {
  const host: import("./trials/kernel").KernelHost;
  export default host;
}

/** As messages that Python has the classes of call it. */
type WebAssemblyMemory = WebAssembly.Memory;

declare module "*/page_gpu.js" {
  const gpu: object;
  export default gpu;
}
