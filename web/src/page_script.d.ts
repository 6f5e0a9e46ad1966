/** The JavaScript half of Python's host, which is part of the Python package. */
declare module "*/page_script.js" {
  const host: import("./trials/kernel").KernelHost;
  export default host;
}
