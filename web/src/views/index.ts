/** The views of the page, in the order of their tabs. A new view is one file and one line here. */

import { accessView } from "./access/view";
import { codeView } from "./code/view";
import { gpuView } from "./gpu/view";
import { searchView } from "./search/view";
import { tensorIRView } from "./tensorir";
import { traceView } from "./trace/view";
import type { ViewFactory } from "./view";

export const views: ViewFactory[] = [
  tensorIRView,
  traceView,
  codeView,
  accessView,
  gpuView,
  searchView,
];
