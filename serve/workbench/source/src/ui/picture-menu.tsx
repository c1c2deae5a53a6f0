/** Copy or save a drawing. */
import { asPng, asSvg, copyPng, copySvg } from "../pages/query/pictures";
import { download } from "./download";
import { Menu, MenuItem } from "./controls";
import { toast } from "./dialog";

export function PictureMenu({ drawing, name }: { drawing: () => SVGSVGElement | null; name: string }) {
  const act = (work: (svg: SVGSVGElement) => Promise<void> | void, close: () => void) => async () => {
    close();
    const svg = drawing();
    if (!svg) return;
    try { await work(svg); } catch (error) { toast(`The browser refuses: ${(error as Error).message}`, "bad"); }
  };
  return (
    <Menu title="Copy or save the picture" icon="image" size="small" kind="quiet" text="Picture">
      {(close) => <>
        <MenuItem icon="copy" onPick={act(copyPng, close)}>Copy as PNG</MenuItem>
        <MenuItem icon="copy" onPick={act(copySvg, close)}>Copy as SVG</MenuItem>
        <MenuItem icon="download" onPick={act(async (svg) => download(await asPng(svg), `${name}.png`), close)}>Save as PNG</MenuItem>
        <MenuItem icon="download" onPick={act((svg) => download(asSvg(svg), `${name}.svg`), close)}>Save as SVG</MenuItem>
      </>}
    </Menu>
  );
}
