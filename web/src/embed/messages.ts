/**
 * What a page and the frames in it say to each other.
 *
 * A frame says `hello` until it is answered, since messages to a page that does not listen yet are
 * lost. All other messages come after that.
 */

/** Marks our messages among those of others. */
export const MARK = "mlcweb";

export interface CellOptions {
  files: { name: string; text: string }[];
  open: string;
}

/** What a frame is to show. */
export interface FrameOptions {
  cell: CellOptions | null;
  lesson: string | null;
  /** Ids of the views to offer, in order; none for program and console alone. */
  panes: string[];
  theme: string | null;
  /** Run the program as soon as it is there. */
  run: boolean;
  /** Whether the frame has a height of its own, which its content must fit into. */
  fixedHeight: boolean;
}

export type ToFrame =
  | { mark: typeof MARK; type: "open"; options: FrameOptions }
  | { mark: typeof MARK; type: "theme"; theme: string | null }
  /** Run Python for the frame at the other end of the port that comes along. */
  | { mark: typeof MARK; type: "host" }
  /** Use the Python at the other end of the port that comes along; again, if the one used is gone. */
  | { mark: typeof MARK; type: "join" }
  /** The Python that was used is gone: start one. */
  | { mark: typeof MARK; type: "inherit" };

export type FromFrame =
  | { mark: typeof MARK; type: "hello" }
  | { mark: typeof MARK; type: "resize"; height: number }
  /** A program has come to its end. */
  | { mark: typeof MARK; type: "ran"; ok: boolean };
