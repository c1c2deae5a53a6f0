import { Empty } from "../../ui/states";

export default function ServicePage() {
  return <div class="page"><div class="title"><h1>Service</h1></div><Empty icon="service" title="Nothing here yet" /></div>;
}
