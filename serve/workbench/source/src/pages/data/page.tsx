import { Empty } from "../../ui/states";

export default function DataPage() {
  return <div class="page"><div class="title"><h1>Data</h1></div><Empty icon="data" title="Nothing here yet" /></div>;
}
