/** A page of the service itself (GraphiQL, the API reference) inside the frame of the workbench. */
export function Framed({ title, address }: { title: string; address: string }) {
  return (
    <div class="page full">
      <h1 class="visually-hidden">{title}</h1>
      <iframe class="framed" src={address} title={title} />
    </div>
  );
}
