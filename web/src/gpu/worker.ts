/** The worker that has the GPU, where Python's cannot wait for one. */

import host from "../../../mlcweb/runtime/host/page_gpu.js";
import type { GpuQuestion, GpuStart } from "./messages";
import { type GpuHost, GpuServer } from "./server";

const server = new GpuServer(host as GpuHost);

addEventListener("message", ({ data }: MessageEvent<GpuStart>) => {
  server.receive(data.first);
  data.port.onmessage = ({ data }: MessageEvent<GpuQuestion>) => server.receive(data);
});
