/** Hand a file to the user. */
import { graph } from "../api/service";

export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The body of an answer of port 7001 as a file of the user. */
export async function downloadFrom(path: string, accept: string, name: string): Promise<void> {
  download(await (await graph(path, { headers: { Accept: accept } })).blob(), name);
}
