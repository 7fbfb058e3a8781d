import java.util.Collections;
import javax.jws.WebMethod;
import javax.jws.WebService;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;

/** A SOAP service and its client, as Apache CXF makes them of an interface. The client's proxy is that of the virtual machine. */
public final class SOAP {
    /** Tracks is the service's interface. */
    @WebService
    public interface Tracks {
        @WebMethod
        String track(String id, int count);
    }

    /** Service answers with as many tracks as it was asked for. */
    @WebService(endpointInterface = "SOAP$Tracks")
    public static final class Service implements Tracks {
        @Override
        public String track(String id, int count) {
            return String.join(",", Collections.nCopies(count, "<" + id + " & é>"));
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("service")) {
            JaxWsServerFactoryBean factory = new JaxWsServerFactoryBean();
            factory.setServiceClass(Tracks.class);
            factory.setServiceBean(new Service());
            factory.setAddress(args[1]);
            factory.create();
            System.out.println("ready");
            Thread.currentThread().join();
        }
        JaxWsProxyFactoryBean factory = new JaxWsProxyFactoryBean();
        factory.setServiceClass(Tracks.class);
        factory.setAddress(args[1]);
        Tracks tracks = (Tracks) factory.create();
        for (int count : new int[] {1, 3, 5000}) {
            String want = new Service().track("NOR-S001", count);
            System.out.println(count + " tracks: " + (tracks.track("NOR-S001", count).equals(want) ? "as they were sent" : "changed"));
        }
        System.exit(0);
    }
}
