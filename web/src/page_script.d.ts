/** The JavaScript halves of Python's host, which are part of the Python package. */
declare module "*/page_script.js" {
  const host: import("./trials/kernel").KernelHost;
  export default host;
}

declare module "*/page_gpu.js" {
  const gpu: object;
  export default gpu;
}
