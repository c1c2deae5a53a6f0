import { Empty } from "../../ui/states";

export default function LivePage() {
  return <div class="page"><div class="title"><h1>Live</h1></div><Empty icon="live" title="Nothing here yet" /></div>;
}
