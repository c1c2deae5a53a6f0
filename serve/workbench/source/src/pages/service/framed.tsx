/** A page of the service itself (GraphiQL, the API reference) inside the frame of the workbench, with its credentials. */
import { credentials, headersOf, membersOf } from "../../api/session";

/** What the scripts of these pages ask the window around them for. */
Object.assign(window, { requestHeaders: () => headersOf(credentials.value), signInMembers: () => membersOf(credentials.value) });

export function Framed({ title, address }: { title: string; address: string }) {
  return (
    <div class="page full">
      <h1 class="visually-hidden">{title}</h1>
      <iframe class="framed" src={`/workbench/frames${address}`} title={title} />
    </div>
  );
}
