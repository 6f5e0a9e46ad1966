/** Sharing: the page's state as a link, as Markdown and as a frame for other pages. */

import { element } from "../dom";
import { placeBelow } from "../shell/menu";
import { toast } from "../shell/toast";
import { copyText } from "../views/kit";
import { linkTo, setHash } from "./address";
import "./dialog.css";
import { encode, type SharedState } from "./state";

/** Addresses longer than this, in characters, are cut by some mail and chat programs. */
const LONG = 8000;

/** Make `button` copy a link to what the page shows, and offer the other forms. */
export function setUpSharing(button: HTMLElement, state: () => SharedState): void {
  const address = element("input", {
    readonly: true,
    "aria-label": "Link",
    "data-testid": "share-address",
  });
  const note = element("p", { class: "share-note" });
  const actions = element("div", { class: "share-actions" });
  const dialog = element(
    "div",
    { class: "share", popover: "auto", role: "dialog", "aria-label": "Share" },
    element(
      "p",
      {},
      "The link holds the program itself; nothing is stored elsewhere, and nothing runs before its reader presses Run.",
    ),
    address,
    actions,
    note,
  );
  button.after(dialog);
  button.setAttribute("aria-haspopup", "dialog");
  address.addEventListener("focus", () => address.select());

  const offer = (label: string, testId: string, text: string): HTMLElement => {
    const copy = element(
      "button",
      { class: "button", type: "button", "data-testid": testId },
      label,
    );
    copy.addEventListener("click", () => void copied(text));
    return copy;
  };
  const copied = async (text: string): Promise<void> => {
    if (await copyText(text)) {
      dialog.hidePopover();
      toast("Copied");
    } else {
      toast("The browser does not allow copying here; select the link and copy it");
      address.focus();
    }
  };

  button.addEventListener("click", () => {
    delete button.dataset.link; // an earlier one
    void (async () => {
      const now = state();
      const code = await encode(now);
      const link = linkTo(code);
      setHash(`code=${code}`);
      address.value = link;
      button.dataset.link = link;
      actions.replaceChildren(
        offer("Copy link", "share-copy", link),
        offer("Copy Markdown", "share-markdown", markdown(now, link)),
        offer("Copy frame", "share-frame", frame(code)),
      );
      const size = `${link.length.toLocaleString("en")} characters`;
      note.textContent =
        link.length > LONG
          ? `${size}: some mail and chat programs cut links of this length.`
          : size;
      dialog.showPopover();
      placeBelow(dialog, button);
      actions.querySelector("button")?.focus();
    })();
  });
}

function markdown({ open }: SharedState, link: string): string {
  return `[${open.replace(/\.py$/, "")}, in mlcweb](${link})`;
}

function frame(code: string): string {
  const source = new URL(`embed.html#code=${code}`, new URL(".", document.baseURI)).href;
  return `<iframe src="${source}" width="100%" height="480" style="border:0" loading="lazy" title="mlcweb" allow="cross-origin-isolated"></iframe>`;
}
