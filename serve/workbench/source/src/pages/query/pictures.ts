/** Charts and maps as files and in the clipboard. */
import { toast } from "../../ui/dialog";

const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "font-variant", "text-anchor"];

/** A drawing that looks the same elsewhere: the styles that it has here are written into it. */
export function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const [own, copied] = [[svg, ...svg.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  own.forEach((one, at) => {
    const style = getComputedStyle(one);
    copied[at]!.removeAttribute("style");
    for (const name of KEPT) copied[at]!.setAttribute(name, style.getPropertyValue(name));
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--surface").trim());
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

export function asSvg(svg: SVGSVGElement): Blob { return new Blob([standalone(svg)], { type: "image/svg+xml" }); }

/** Twice as large as on the page, so that it is sharp in a document. */
export async function asPng(svg: SVGSVGElement): Promise<Blob> {
  const image = new Image();
  const address = URL.createObjectURL(asSvg(svg));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width * 2;
    canvas.height = image.height * 2;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => canvas.toBlob((blob) => blob ? done(blob) : fail(new Error("The picture is too large.")), "image/png"));
  } finally { URL.revokeObjectURL(address); }
}

export async function copyPng(svg: SVGSVGElement): Promise<void> {
  await navigator.clipboard.write([new ClipboardItem({ "image/png": asPng(svg) })]);
  toast("The picture is in the clipboard.");
}
export async function copySvg(svg: SVGSVGElement): Promise<void> {
  await navigator.clipboard.writeText(standalone(svg));
  toast("The drawing is in the clipboard, as SVG.");
}
